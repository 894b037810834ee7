/**
 * Finds where the markup of tool calls ends. Templates that expect calls before tool results are rendered with placeholder answers that
 * have calls. The model has already sampled the end of its own call markup, so exactly this end is cut from the rendered text: a shorter or
 * longer cut would corrupt the prompt.
 */
import type { Message } from '@swefarm/shared';
import { AnswerError, isRefusal } from '../endpoint/errors.ts';
import {
  type AnswerPair,
  type Chat,
  callPair,
  commonPrefix,
  commonSuffix,
  renderClosed,
  renderTail,
  TEXT_PAIR,
} from './placeholders.ts';

export type CallBoundary = {
  /** Call markup after the last value; null: the template accepts tool results after an answer without calls. */
  markup: Int32Array | null;
  /** Number of tokens between the markup and the first result, including the token that ends the turn. */
  heading: number;
  /** Removes the markup from the start of `tail`. Throws AnswerError `template` if `tail` starts with other tokens. */
  cut(tail: Int32Array): Int32Array;
};

const result = (content: string): Message[] => [{ role: 'tool', tool_call_id: 'call00000', content }];

/**
 * Tries three methods on a short chat and uses the first that works. The cut lies before the first token that depends on the tool result,
 * so that no part of the result is lost.
 *
 * @throws AnswerError `template` if no method works; errors of the renderer
 */
export async function findCallBoundary(chat: Chat): Promise<CallBoundary> {
  const calls = callPair(result(''), null);
  const [called, plain] = await Promise.all([resultAfter(calls, chat), resultAfter(TEXT_PAIR, chat)]);
  // The template accepts results after an answer without calls. Calls are refused, or only add markup before the same text.
  if ('tail' in plain && ('refused' in called || isMarkupBefore(plain.tail, called)))
    return { markup: null, heading: plain.heading, cut: (ids) => ids };
  const why = 'refused' in plain ? plain.refused : null;
  if ('refused' in called) throw why ?? called.refused;
  const before = called.tail.subarray(0, called.heading);
  const [end] = await renderTail(chat, TEXT_PAIR, [{ role: 'user', content: 'and?' }]);
  const byEnd = before.indexOf(end ?? -1);
  if (byEnd !== -1) return boundaryAt(before, byEnd);
  const byClosing = await closingAt(calls[0], before, chat);
  if (byClosing >= 0) return boundaryAt(before, byClosing);
  throw why ?? new AnswerError('template', 'no end of turn between an answer and its tool results');
}

/**
 * `tail`: tokens that the template writes after the content of an answer: the end of the turn, a tool result and the head of the next
 * answer. `heading`: number of tokens of `tail` before the content of the tool result.
 */
type Tail = { tail: Int32Array; heading: number };

/** Renders a tool result after the answers. `refused`: the template cannot render the chat. Throws other errors of the renderer. */
async function resultAfter(answers: AnswerPair, chat: Chat): Promise<Tail | { refused: unknown }> {
  const after = (content: string) => renderTail(chat, answers, result(content));
  try {
    const [tail, other] = await Promise.all([after('out'), after('different')]);
    const heading = commonPrefix(tail, other);
    if (heading < tail.length) return { tail, heading };
    throw new AnswerError('template', 'the chat template leaves tool results out of the prompt');
  } catch (error) {
    if (isRefusal(error)) return { refused: error };
    throw error;
  }
}

const isMarkupBefore = (plain: Int32Array, { tail, heading }: Tail): boolean =>
  endsWith(tail, plain) && tail.length - plain.length <= heading;

/** Returns the index in `tail` where the end of the turn begins; -1 if unknown. Renderings that end with the answer show this end. */
async function closingAt(call: Message, tail: Int32Array, chat: Chat): Promise<number> {
  const closings = [call, ...TEXT_PAIR].map((answer) => renderClosed(chat, answer));
  const [called = tail, yes = tail, no = tail] = await Promise.all(closings);
  for (let length = tail.length; length > 0; length--) {
    if (endsWith(called, tail.subarray(0, length))) return length - commonSuffix(yes, no);
  }
  return -1;
}

function boundaryAt(before: Int32Array, length: number): CallBoundary {
  const markup = before.slice(0, length);
  return {
    markup,
    heading: before.length - length,
    cut(tail) {
      if (markup.every((id, at) => tail[at] === id)) return tail.subarray(markup.length);
      throw new AnswerError('template', 'the chat template does not always write the same end of calls');
    },
  };
}

const endsWith = (tail: Int32Array, end: Int32Array): boolean =>
  end.length <= tail.length && end.every((id, at) => tail[tail.length - end.length + at] === id);
