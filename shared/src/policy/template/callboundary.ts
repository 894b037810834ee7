/**
 * Where the markup of tool calls ends and what the template writes after an answer begins. The placeholder of an answer that
 * calls tools must carry calls where templates expect them, and the markup that follows the last value was
 * sampled by the model: it must not be written again, and nothing more than it may be cut away.
 */
import type { Message, ToolDefinition } from '../../records/trajectory.ts';
import { AnswerError, isRefusal } from '../endpoint/errors.ts';
import type { Post } from '../endpoint/post.ts';
import {
  type AnswerPair,
  callPair,
  commonPrefix,
  commonSuffix,
  renderClosed,
  renderTail,
  TEXT_PAIR,
} from './placeholders.ts';
import type { Renderer } from './renderer.ts';

export type CallBoundary = {
  /** What a call's markup leaves behind its last value; null: results may follow an answer without calls. */
  markup: Int32Array | null;
  /** Tokens between the markup and the first result: among them is the one that ends the turn. */
  heading: number;
  /** A tail without the markup. Throws AnswerError `template` when it does not begin with it. */
  cut(tail: Int32Array): Int32Array;
};

type Chat = { renderer: Renderer; tools: readonly ToolDefinition[]; post: Post };

const result = (content: string): Message[] => [{ role: 'tool', tool_call_id: 'call00000', content }];

/**
 * Tried on a short chat, in three ways; the first that holds is taken. The cut must lie before the first token that another
 * tool result would change: behind it, a result would vanish from the prompt.
 *
 * @throws AnswerError `template` when none holds, or what the renderer throws
 */
export async function findCallBoundary(chat: Chat): Promise<CallBoundary> {
  const calls = callPair(result(''), null);
  const [called, plain] = await Promise.all([resultAfter(calls, chat), resultAfter(TEXT_PAIR, chat)]);
  // Results after an answer without calls: what differs is the markup. Some templates refuse such a chat, others write no calls.
  if ('tail' in plain && ('refused' in called || isMarkupBefore(plain.tail, called)))
    return { markup: null, heading: plain.heading, cut: (ids) => ids };
  const why = 'refused' in plain ? plain.refused : null;
  if ('refused' in called) throw why ?? called.refused;
  // The token that ends an answer without calls.
  const before = called.tail.subarray(0, called.heading);
  const { renderer, tools, post } = chat;
  const [end] = await renderTail(renderer, TEXT_PAIR, [{ role: 'user', content: 'and?' }], tools, post);
  const byEnd = before.indexOf(end ?? -1);
  if (byEnd !== -1) return boundaryAt(before, byEnd);
  // Calls may end with a token of their own.
  const byClosing = await closingAt(calls[0], before, chat);
  if (byClosing >= 0) return boundaryAt(before, byClosing);
  throw why ?? new AnswerError('template', 'no end of turn between an answer and its tool results');
}

/** What the template writes after an answer that a tool result follows; `heading`: its tokens before the result's own. */
type Tail = { tail: Int32Array; heading: number };

/** `refused`: the template cannot write it. Throws the faults of the endpoint that renders it: they say nothing of the template. */
async function resultAfter(
  answers: AnswerPair,
  { renderer, tools, post }: Chat,
): Promise<Tail | { refused: unknown }> {
  const after = (content: string) => renderTail(renderer, answers, result(content), tools, post);
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

/** Where the end of a turn begins in `tail`, by chats that end with the answer: as long as that of an answer without calls. */
async function closingAt(call: Message, tail: Int32Array, { renderer, tools, post }: Chat): Promise<number> {
  const closings = [call, ...TEXT_PAIR].map((answer) => renderClosed(renderer, answer, tools, post));
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
      throw new AnswerError('template', 'the chat template writes the end of calls now one way, now another');
    },
  };
}

const endsWith = (tail: Int32Array, end: Int32Array): boolean =>
  end.length <= tail.length && end.every((id, at) => tail[tail.length - end.length + at] === id);
