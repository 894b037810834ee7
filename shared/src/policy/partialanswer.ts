/** An answer that was broken off, as far as it came: mode `token-in` goes on from it, and samples nothing twice. */

import { RolloutFailure } from '../failures/failure.ts';
import type { PolicyConfig } from '../records/runconfig.ts';
import type { RequestedSampling } from '../records/trajectory.ts';
import type { CompletionReply } from './endpoint/completion.ts';
import type { PartialCompletion } from './endpoint/completionstream.ts';

/** More pieces than any answer has whose engine is well: from then on what is broken off is thrown away. */
const MOST_PARTS = 64;
/** Seeds are below it: see turnSeed(). */
const SEEDS = 2 ** 31;

export type PartialAnswer = {
  /** Tokens that are there. */
  readonly tokens: number;
  /** What is there, to be appended to the prompt. */
  readonly ids: Int32Array;
  keep(part: PartialCompletion | null): void;
  /** What to ask for the rest: as many tokens less as are there. Null: nothing, the answer is as long as it may be. */
  rest(asked: RequestedSampling): RequestedSampling | null;
  /** The same for what else speaks of its length. */
  config(whole: PolicyConfig): PolicyConfig;
  /** The whole answer, given the last piece of it. `prompt` is that of the turn. */
  whole(last: CompletionReply, prompt: Int32Array): CompletionReply;
  /** The answer as it is there, cut by its token limit. */
  cut(prompt: Int32Array): CompletionReply;
};

export function createPartialAnswer(): PartialAnswer {
  const texts: string[] = [];
  let ids = new Int32Array(0);
  let logProbs = new Float32Array(0);
  let parts = 0;
  return {
    get tokens() {
      return ids.length;
    },
    get ids() {
      return ids;
    },
    keep(part) {
      if (part === null || part.ids.length === 0 || parts >= MOST_PARTS) return;
      parts++;
      texts.push(part.text);
      ids = joinedIds(ids, part.ids);
      logProbs = joinedLogProbs(logProbs, part.logProbs);
    },
    rest(asked) {
      const { max_tokens: most, seed } = asked;
      if (ids.length === 0) return asked;
      if (typeof most === 'number' && most <= ids.length) return null;
      return {
        ...asked,
        ...(typeof most === 'number' ? { max_tokens: most - ids.length } : {}),
        // The same seed would draw for these tokens what it drew for the first ones.
        ...(seed === undefined ? {} : { seed: (seed + ids.length) % SEEDS }),
      };
    },
    config(whole) {
      const { min_tokens: least } = whole.extra_body;
      if (ids.length === 0 || typeof least !== 'number') return whole;
      return { ...whole, extra_body: { ...whole.extra_body, min_tokens: Math.max(0, least - ids.length) } };
    },
    whole(last, prompt) {
      if (ids.length === 0) return { ...last, prompt_token_ids: last.prompt_token_ids ?? prompt };
      const { usage } = last;
      return {
        ...last,
        text: [...texts, last.text].join(''),
        usage: usage && {
          prompt_tokens: usage.prompt_tokens - ids.length,
          completion_tokens: usage.completion_tokens + ids.length,
        },
        prompt_token_ids: turnPrompt(last.prompt_token_ids, ids) ?? prompt,
        generation_token_ids: joinedIds(ids, last.generation_token_ids),
        generation_log_probs:
          last.generation_log_probs && joinedLogProbs(logProbs, last.generation_log_probs),
      };
    },
    cut: (prompt) => ({
      text: texts.join(''),
      finish_reason: 'length',
      usage: null,
      prompt_token_ids: prompt,
      generation_token_ids: ids,
      generation_log_probs: logProbs,
    }),
  };
}

/** The prompt that the server tells holds what was there of the answer: without it, it is the turn's. */
function turnPrompt(told: Int32Array | null, kept: Int32Array): Int32Array | null {
  if (told === null) return null;
  const from = told.length - kept.length;
  if (from < 0 || kept.some((id, at) => told[from + at] !== id))
    throw new RolloutFailure(
      'policy_tokens',
      'the endpoint was asked to go on from an answer, and its prompt ids do not end with it',
    );
  return told.slice(0, from);
}

export function joinedIds(first: Int32Array, second: Int32Array): Int32Array<ArrayBuffer> {
  const both = new Int32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function joinedLogProbs(first: Float32Array, second: Float32Array): Float32Array<ArrayBuffer> {
  const both = new Float32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
