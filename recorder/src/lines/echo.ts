/** Compares messages of a request with those of earlier requests, and with the answers that the agent got. */
import type { Message } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';

type Calls = NonNullable<Message['tool_calls']>;
const callsOf = ({ tool_calls: calls }: Message): Calls => calls ?? [];
const textOf = ({ content }: Message): string => (content ?? '').trim();

/** Returns whether two messages are rendered alike. */
export const isSameMessage = (one: Message, other: Message): boolean =>
  one.role === other.role &&
  (one.content ?? '') === (other.content ?? '') &&
  (one.tool_call_id ?? '') === (other.tool_call_id ?? '') &&
  (one.reasoning_content ?? '') === (other.reasoning_content ?? '') &&
  haveSameIds(callsOf(one), callsOf(other)) &&
  callsOf(one).every((call, index) => isSameCall(call, callsOf(other)[index]));

const haveSameIds = (one: Calls, other: Calls): boolean =>
  one.length === other.length && one.every(({ id }, index) => id === other[index]?.id);

function isSameCall(one: Calls[number], other: Calls[number] | undefined): boolean {
  if (one.function.name !== other?.function.name) return false;
  const [mine, theirs] = [one.function.arguments, other.function.arguments];
  return mine === theirs || isSameValue(tryParseJson(mine || '{}'), tryParseJson(theirs || '{}'));
}

/** Returns whether two JSON values are equal, with fields in any order. Undefined equals nothing. */
function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null)
    return one !== undefined && one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [fields, others] = [Object.entries(one), new Map(Object.entries(other))];
  return fields.length === others.size && fields.every(([key, value]) => isSameValue(value, others.get(key)));
}

/** An answer as the agent got it. `id`: by which a signature in the echo names the answer. `unread`: indices of calls that cannot be read. */
export type Given = { id: string; message: Message; unread: ReadonlySet<number> };

/**
 * Returns whether a message of a request is the echo of an answer; null: it is not. `repaired`: a call that could not be read came back
 * with other arguments or another name. The ids of calls must be equal and in order, and the text equal without white space at its ends.
 * Reasoning counts only if the echo has some. `named`: id of the answer that the echo names.
 */
export function echoOf(
  { id, message, unread }: Given,
  echo: Message,
  named: string | undefined,
): 'same' | 'repaired' | null {
  const [mine, theirs] = [callsOf(message), callsOf(echo)];
  if (!haveSameIds(mine, theirs) || textOf(message) !== textOf(echo)) return null;
  if (named !== id && isOtherThought(message, echo)) return null;
  const changed = mine.flatMap((call, index) => (isSameCall(call, theirs[index]) ? [] : [index]));
  if (changed.length === 0) return 'same';
  return changed.every((index) => unread.has(index)) ? 'repaired' : null;
}

const isOtherThought = (message: Message, echo: Message): boolean =>
  (echo.reasoning_content ?? '').trim() !== '' &&
  (echo.reasoning_content ?? '').trim() !== (message.reasoning_content ?? '').trim();
