/**
 * Finds where the markup of tool calls ends and the template's text after an answer begins. Where templates expect calls before
 * results, the placeholder answers have calls. The model has already sampled the markup that follows the last value, so exactly
 * this markup is cut from the rendered text: to write it twice or to cut more would corrupt the prompt.
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
  /** The call markup after the last value; null: the template lets results follow an answer without calls. */
  markup: Int32Array | null;
  /** Tokens between the markup and the first result, including the token that ends the turn. */
  heading: number;
  /** Cuts the markup from a tail. Throws AnswerError `template` when the tail does not begin with it. */
  cut(tail: Int32Array): Int32Array;
};

const result = (content: string): Message[] => [{ role: 'tool', tool_call_id: 'call00000', content }];

/**
 * Tries three methods on a short chat and takes the first that works. The cut must lie before the first token that depends on
 * the tool result; otherwise a part of the result would be missing from the prompt.
 *
 * @throws AnswerError `template` when none works, or what the renderer throws
 */
export async function findCallBoundary(chat: Chat): Promise<CallBoundary> {
  const calls = callPair(result(''), null);
  const [called, plain] = await Promise.all([resultAfter(calls, chat), resultAfter(TEXT_PAIR, chat)]);
  // Results after an answer without calls: the difference is the markup. Some templates refuse such a chat, others write no calls.
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

/** The template's text between an answer and the end of a tool result; `heading`: its tokens before the result's text. */
type Tail = { tail: Int32Array; heading: number };

/** `refused`: the template cannot render the chat. Throws other errors of the rendering endpoint. */
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

/** The index in `tail` at which the end of a turn begins; -1 when unknown. Chats that end with the answer show its length. */
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
