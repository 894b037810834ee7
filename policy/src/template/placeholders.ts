/** Renders chats with short placeholder answers and compares the renderings. */
import type { Message, ToolDefinition } from '@swefarm/shared';
import { AnswerError } from '../endpoint/errors.ts';
import type { Post } from '../endpoint/post.ts';
import type { Renderer } from './renderer.ts';

/** The model's chat template with its tools, and the transport to the endpoint that renders it. */
export type Chat = { renderer: Renderer; tools: readonly ToolDefinition[]; post: Post };

/** Two different answers. The common end of the renderings with them contains no part of either answer. */
export type AnswerPair = readonly [Message, Message];

export const TEXT_PAIR: AnswerPair = [
  { role: 'assistant', content: 'yes' },
  { role: 'assistant', content: 'no' },
];

const QUESTION: Message = { role: 'user', content: 'well?' };

/** Returns the tokens that the template writes after either answer. Throws AnswerError `template` if the answer has no clear end. */
export async function renderTail(
  { renderer, tools, post }: Chat,
  answers: AnswerPair,
  messages: readonly Message[],
): Promise<Int32Array> {
  const [one, other] = await Promise.all(
    answers.map((answer) => renderer.render([QUESTION, answer, ...messages], tools, post)),
  );
  const length = commonSuffix(one ?? [], other ?? []);
  // Renderings that are equal as a whole do not contain the answer, so the end of the answer cannot be found.
  if (one && other && length > 0 && length < Math.min(one.length, other.length))
    return one.subarray(one.length - length);
  throw new AnswerError(
    'template',
    "the chat template's text after an answer cannot be separated from the answer",
  );
}

/** Renders a chat that ends with the answer, without the head of another answer. */
export const renderClosed = ({ renderer, tools, post }: Chat, answer: Message): Promise<Int32Array> =>
  renderer.render([QUESTION, answer], tools, post, { open: false });

/** Returns two answers with one call for each tool result of `messages`, with the names of the real calls. */
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
      .map(({ tool_call_id: id }, index) => ({
        id: id ?? `call${String(index).padStart(5, '0')}`,
        type: 'function' as const,
        function: { name: nameOf(id), arguments: JSON.stringify({ command }) },
      })),
  });
  return [answer('yes'), answer('no')];
}

type Ids = Int32Array | readonly number[];

/** Counts equal tokens. `at` returns the token at an index that counts from the start or from the end. */
function countEqual(one: Ids, other: Ids, at: (ids: Ids, index: number) => number | undefined): number {
  let length = 0;
  while (length < one.length && length < other.length && at(one, length) === at(other, length)) length++;
  return length;
}

/** Returns the number of tokens in the common end of two renderings. */
export const commonSuffix = (one: Ids, other: Ids): number =>
  countEqual(one, other, (ids, index) => ids.at(-1 - index));

/** Returns the number of tokens in the common start of two renderings. */
export const commonPrefix = (one: Int32Array, other: Int32Array): number =>
  countEqual(one, other, (ids, index) => ids[index]);
