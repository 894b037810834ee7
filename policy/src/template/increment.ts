/**
 * Computes the token ids that the chat template writes between two answers. Sampled text is never rendered or tokenised again: new messages
 * are rendered after the placeholder answers `yes` and `no`, and the common end of both renderings follows any answer. The token that ends
 * the turn is left out if the model sampled it. Tool results: callboundary.ts.
 */
import type { Message, ToolDefinition } from '@swefarm/shared';
import type { Post } from '../endpoint/post.ts';
import { findCallBoundary } from './callboundary.ts';
import { once } from './once.ts';
import { callPair, commonPrefix, renderTail, TEXT_PAIR } from './placeholders.ts';
import type { Renderer } from './renderer.ts';

/** The answer that the next prompt continues. */
export type PreviousAnswer = {
  message: Message;
  lastId: number | undefined;
  /** True if the model ended the answer by itself, so that `lastId` is an end token. */
  ended: boolean;
};

export type Incrementer = {
  /**
   * Returns the ids to append to all earlier tokens, so that the model reads `messages` and answers.
   *
   * @throws AnswerError `template` if the template's text after an answer cannot be separated from the answer
   */
  after(answered: PreviousAnswer, messages: readonly Message[], post: Post): Promise<Int32Array>;
};

export function createIncrementer(renderer: Renderer, tools: readonly ToolDefinition[]): Incrementer {
  const boundaryOf = once((post) => findCallBoundary({ renderer, tools, post }));
  /** Number of tokens between an answer and the text of the next user message, including the token that ends the turn. */
  const heading = once(async (post) => {
    const after = (content: string) =>
      renderTail({ renderer, tools, post }, TEXT_PAIR, [{ role: 'user', content }]);
    return commonPrefix(await after('and?'), await after('but why?'));
  });
  return {
    async after(answered, messages, post) {
      if (!messages.some(({ role }) => role === 'tool')) {
        const tail = await renderTail({ renderer, tools, post }, TEXT_PAIR, messages);
        return await withoutEnd(tail, answered, () => heading(post));
      }
      const boundary = await boundaryOf(post);
      const answers = boundary.markup === null ? TEXT_PAIR : callPair(messages, answered.message);
      const tail = boundary.cut(await renderTail({ renderer, tools, post }, answers, messages));
      return await withoutEnd(tail, answered, async () => boundary.heading);
    },
  };
}

/** Removes the token that ends the turn from `tail` if the model sampled it. Some templates write white space before this token. */
async function withoutEnd(
  tail: Int32Array,
  { lastId, ended }: PreviousAnswer,
  heading: () => Promise<number>,
): Promise<Int32Array> {
  if (lastId === undefined) return tail;
  if (tail[0] === lastId) return tail.subarray(1);
  return ended ? tail.subarray(tail.subarray(0, await heading()).indexOf(lastId) + 1) : tail;
}
