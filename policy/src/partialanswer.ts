/** The received part of an answer that broke off: mode `token-in` continues it instead of sampling it again. */

import type { PolicyConfig, RequestedSampling } from '@swefarm/shared';
import { RolloutFailure } from '@swefarm/shared';
import type { CompletionReply } from './endpoint/completion.ts';
import type { PartialCompletion } from './endpoint/completionstream.ts';

/** More pieces than any answer of a healthy engine has; later pieces are discarded. */
const MOST_PARTS = 64;
/** Upper bound of seeds: see turnSeed(). */
const SEEDS = 2 ** 31;

export class PartialAnswer {
  readonly #texts: string[] = [];
  #ids = new Int32Array(0);
  #logProbs = new Float32Array(0);
  #parts = 0;

  /** Number of tokens received so far. */
  get tokens(): number {
    return this.#ids.length;
  }

  /** The received ids, to be appended to the prompt. */
  get ids(): Int32Array {
    return this.#ids;
  }

  append(part: PartialCompletion | null): void {
    if (part === null || part.ids.length === 0 || this.#parts >= MOST_PARTS) return;
    this.#parts++;
    this.#texts.push(part.text);
    this.#ids = joinIds(this.#ids, part.ids);
    this.#logProbs = joinLogProbs(this.#logProbs, part.logProbs);
  }

  /** The sampling of the request for the rest, reduced by the tokens received; null when the answer has reached its token limit. */
  remaining(asked: RequestedSampling): RequestedSampling | null {
    const { max_tokens: most, seed } = asked;
    if (this.tokens === 0) return asked;
    if (typeof most === 'number' && most <= this.tokens) return null;
    return {
      ...asked,
      ...(typeof most === 'number' ? { max_tokens: most - this.tokens } : {}),
      // The same seed would repeat for these tokens the draws of the first ones.
      ...(seed === undefined ? {} : { seed: (seed + this.tokens) % SEEDS }),
    };
  }

  /** The configuration for the rest: the configured least length applies to the whole answer, so it shrinks too. */
  configOf(whole: PolicyConfig): PolicyConfig {
    const { min_tokens: least } = whole.extra_body;
    if (this.tokens === 0 || typeof least !== 'number') return whole;
    return { ...whole, extra_body: { ...whole.extra_body, min_tokens: Math.max(0, least - this.tokens) } };
  }

  /** The whole answer, built from the parts and its last piece. `prompt` is the turn's prompt. */
  complete(last: CompletionReply, prompt: Int32Array): CompletionReply {
    if (this.tokens === 0) return { ...last, prompt_token_ids: last.prompt_token_ids ?? prompt };
    const { usage } = last;
    return {
      ...last,
      text: [...this.#texts, last.text].join(''),
      usage: usage && {
        prompt_tokens: usage.prompt_tokens - this.tokens,
        completion_tokens: usage.completion_tokens + this.tokens,
      },
      prompt_token_ids: turnPrompt(last.prompt_token_ids, this.#ids) ?? prompt,
      generation_token_ids: joinIds(this.#ids, last.generation_token_ids),
      generation_log_probs:
        last.generation_log_probs && joinLogProbs(this.#logProbs, last.generation_log_probs),
    };
  }

  /** The received part as the answer, ended by its token limit. */
  cutAtLimit(prompt: Int32Array): CompletionReply {
    return {
      text: this.#texts.join(''),
      finish_reason: 'length',
      usage: null,
      prompt_token_ids: prompt,
      generation_token_ids: this.#ids,
      generation_log_probs: this.#logProbs,
    };
  }
}

/** The prompt that the server returned ends with the received tokens of the answer; without them it is the turn's prompt. */
function turnPrompt(served: Int32Array | null, kept: Int32Array): Int32Array | null {
  if (served === null) return null;
  const from = served.length - kept.length;
  if (from < 0 || kept.some((id, at) => served[from + at] !== id))
    throw new RolloutFailure(
      'policy_tokens',
      'the endpoint was asked to continue an answer, and its prompt ids do not end with it',
    );
  return served.slice(0, from);
}

export function joinIds(first: Int32Array, second: Int32Array): Int32Array<ArrayBuffer> {
  const both = new Int32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function joinLogProbs(first: Float32Array, second: Float32Array): Float32Array<ArrayBuffer> {
  const both = new Float32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
