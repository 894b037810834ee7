/**
 * Computes, as token ids, what the chat template writes between two answers.
 *
 * Sampled text is never rendered or tokenised again. Two short placeholder answers, `yes` and `no`, stand for it: the same
 * new messages are rendered after each, and the common end of both renderings is what follows any answer: the
 * token that ends the turn, then the new messages, then the head of the next answer. This needs no knowledge of the
 * template, and a template that rewrites earlier answers (drops their thinking) cannot change sampled tokens.
 *
 * The model samples the token that ends a turn when it stops by itself; a limit cuts the answer off without it. It is
 * omitted in the first case and written in the second. Where tool results follow, see callboundary.ts.
 */
import type { Message, ToolDefinition } from '@swefarm/shared';
import type { Post } from '../endpoint/post.ts';
import { type CallBoundary, findCallBoundary } from './callboundary.ts';
import { callPair, commonPrefix, renderTail, TEXT_PAIR } from './placeholders.ts';
import type { Renderer } from './renderer.ts';

/** The answer that the next prompt continues. */
export type PreviousAnswer = {
  message: Message;
  /** The last token sampled. */
  lastId: number | undefined;
  /** The model ended the answer by itself: the last token is one of its end tokens. */
  ended: boolean;
};

export type Incrementer = {
  /**
   * The ids to append to all earlier tokens, so that the model reads `messages` and answers.
   *
   * @throws AnswerError `template` when the template's text after an answer cannot be separated from the answer
   */
  after(answered: PreviousAnswer, messages: readonly Message[], post: Post): Promise<Int32Array>;
};

export function createIncrementer(renderer: Renderer, tools: readonly ToolDefinition[]): Incrementer {
  const boundaryOf = once((post) => findCallBoundary({ renderer, tools, post }));
  /** Tokens between an answer and the next user message's text, including the token that ends the turn. */
  const heading = once(async (post) => {
    const after = (content: string) =>
      renderTail(renderer, TEXT_PAIR, [{ role: 'user', content }], tools, post);
    return commonPrefix(await after('and?'), await after('but why?'));
  });
  return {
    async after(answered, messages, post) {
      if (!messages.some(({ role }) => role === 'tool')) {
        const tail = await renderTail(renderer, TEXT_PAIR, messages, tools, post);
        return await withoutEnd(tail, answered, () => heading(post));
      }
      const boundary = await boundaryOf(post);
      const tail = await afterCalls(boundary, answered.message, messages, post);
      return await withoutEnd(tail, answered, async () => boundary.heading);
    },
  };

  async function afterCalls(end: CallBoundary, message: Message, messages: readonly Message[], post: Post) {
    if (end.markup === null) return await renderTail(renderer, TEXT_PAIR, messages, tools, post);
    const tail = await renderTail(renderer, callPair(messages, message), messages, tools, post);
    return end.cut(tail);
  }
}

/** Removes the end of the turn from a tail if the model sampled it. Some templates write white space before it. */
async function withoutEnd(
  tail: Int32Array,
  { lastId, ended }: PreviousAnswer,
  heading: () => Promise<number>,
): Promise<Int32Array> {
  if (lastId === undefined) return tail;
  if (tail[0] === lastId) return tail.subarray(1);
  return ended ? tail.subarray(tail.subarray(0, await heading()).indexOf(lastId) + 1) : tail;
}

/** Calls `look` at the first use, and again only after a failure. */
function once<T>(look: (post: Post) => Promise<T>): (post: Post) => Promise<T> {
  let found: Promise<T> | null = null;
  return async (post) => {
    found ??= look(post);
    try {
      return await found;
    } catch (error) {
      found = null;
      throw error;
    }
  };
}
