/** Placeholder chats that stand for the real one: short answers, and what two renderings of them have in common. */
import type { Message, ToolDefinition } from '@swefarm/shared';
import { AnswerError } from '../endpoint/errors.ts';
import type { Post } from '../endpoint/post.ts';
import type { Renderer } from './renderer.ts';

/** Two different answers: the common end of the renderings after them contains no part of either answer. */
export type AnswerPair = readonly [Message, Message];

export const TEXT_PAIR: AnswerPair = [
  { role: 'assistant', content: 'yes' },
  { role: 'assistant', content: 'no' },
];

const QUESTION: Message = { role: 'user', content: 'well?' };

/** What the template writes after either answer. */
export async function renderTail(
  renderer: Renderer,
  sides: AnswerPair,
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  post: Post,
): Promise<Int32Array> {
  const [one, other] = await Promise.all(
    sides.map((answer) => renderer.render([QUESTION, answer, ...messages], tools, post)),
  );
  const length = commonSuffix(one ?? [], other ?? []);
  // Equal from the first token on: the template leaves the answer out, so its end cannot be found.
  if (one && other && length > 0 && length < Math.min(one.length, other.length))
    return one.subarray(one.length - length);
  throw new AnswerError(
    'template',
    'what the chat template writes after an answer cannot be told from the answer',
  );
}

/** Renders a chat that ends with the answer, without the head of a next one. */
export const renderClosed = (
  renderer: Renderer,
  answer: Message,
  tools: readonly ToolDefinition[],
  post: Post,
) => renderer.render([QUESTION, answer], tools, post, { open: false });

/** Answers with one call for each tool result of `messages`, under the real calls' names. */
export function callPair(messages: readonly Message[], answered: Message | null): AnswerPair {
  const nameOf = (id: string | undefined): string => {
    const name = answered?.tool_calls?.find((call) => call.id === id)?.function.name ?? '';
    return /^[\w.-]{1,64}$/.test(name) ? name : 'bash';
  };
  const answer = (command: string): Message => ({
    role: 'assistant',
    content: '',
    tool_calls: messages
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id: id }, place) => ({
        id: id ?? `call${String(place).padStart(5, '0')}`,
        type: 'function' as const,
        function: { name: nameOf(id), arguments: JSON.stringify({ command }) },
      })),
  });
  return [answer('yes'), answer('no')];
}

type Ids = Int32Array | readonly number[];

/** Counts equal tokens from one end on. */
export function alike(one: Ids, other: Ids, at: (ids: Ids, place: number) => number | undefined): number {
  let length = 0;
  while (length < one.length && length < other.length && at(one, length) === at(other, length)) length++;
  return length;
}

/** How many tokens the common end of two renderings has. */
export const commonSuffix = (one: Ids, other: Ids): number =>
  alike(one, other, (ids, place) => ids.at(-1 - place));

/** How many tokens the common start of two tails has; what follows it comes from the messages. */
export const commonPrefix = (one: Int32Array, other: Int32Array): number =>
  alike(one, other, (ids, place) => ids[place]);
