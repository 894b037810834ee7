/** Stores the received part of an interrupted answer, which mode `token-in` continues. */

import type { PolicyConfig, RequestedSampling } from '@swefarm/shared';
import { RolloutFailure } from '@swefarm/shared';
import type { CompletionReply } from './endpoint/completion.ts';
import type { PartialCompletion } from './endpoint/completionstream.ts';
import { joinIds } from './tokens/ids.ts';

/** Maximum number of stored parts. Later parts are discarded; a healthy engine interrupts no answer so often. */
const MOST_PARTS = 64;
/** Exclusive upper bound of seeds, as in turnSeed(). */
const SEEDS = 2 ** 31;

export class PartialAnswer {
  readonly #texts: string[] = [];
  #ids = new Int32Array(0);
  #logProbs = new Float32Array(0);
  #parts = 0;

  get tokens(): number {
    return this.#ids.length;
  }

  get ids(): Int32Array {
    return this.#ids;
  }

  /** Returns all received tokens, including those of an unfinished stream (`part`). */
  with(part: PartialCompletion | null): PartialCompletion {
    const [text, ids, logProbs] = [this.#texts.join(''), this.#ids, this.#logProbs];
    if (part === null) return { text, ids, logProbs };
    return {
      text: text + part.text,
      ids: joinIds(ids, part.ids),
      logProbs: joinLogProbs(logProbs, part.logProbs),
    };
  }

  append(part: PartialCompletion | null): void {
    if (part === null || part.ids.length === 0 || this.#parts >= MOST_PARTS) return;
    this.#parts++;
    this.#texts.push(part.text);
    this.#ids = joinIds(this.#ids, part.ids);
    this.#logProbs = joinLogProbs(this.#logProbs, part.logProbs);
  }

  /** Returns the sampling settings for the rest of the answer; null if the answer has reached its token limit. */
  remaining(whole: RequestedSampling): RequestedSampling | null {
    const { max_tokens: most, seed } = whole;
    if (this.tokens === 0) return whole;
    if (typeof most === 'number' && most <= this.tokens) return null;
    return {
      ...whole,
      ...(typeof most === 'number' ? { max_tokens: most - this.tokens } : {}),
      // With the same seed the engine would repeat the first tokens.
      ...(seed === undefined ? {} : { seed: (seed + this.tokens) % SEEDS }),
    };
  }

  /** Returns the configuration for the rest of the answer: the received tokens are subtracted from `min_tokens`. */
  configOf(whole: PolicyConfig): PolicyConfig {
    const { min_tokens: least } = whole.extra_body;
    if (this.tokens === 0 || typeof least !== 'number') return whole;
    return { ...whole, extra_body: { ...whole.extra_body, min_tokens: Math.max(0, least - this.tokens) } };
  }

  /** Joins the received parts and `last` to the whole answer. `prompt`: the prompt of the turn. */
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

/**
 * Returns the prompt that the server returned, without the received tokens at its end; null: the server returned no prompt.
 *
 * @throws RolloutFailure `policy_tokens` if the prompt does not end with the received tokens
 */
function turnPrompt(served: Int32Array | null, received: Int32Array): Int32Array | null {
  if (served === null) return null;
  const from = served.length - received.length;
  if (from < 0 || received.some((id, at) => served[from + at] !== id))
    throw new RolloutFailure(
      'policy_tokens',
      'the prompt ids of a continued answer do not end with its received part',
    );
  return served.slice(0, from);
}

function joinLogProbs(first: Float32Array, second: Float32Array): Float32Array<ArrayBuffer> {
  const both = new Float32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
