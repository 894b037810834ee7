/** An answer that was broken off, as far as it came: mode `token-in` continues it, and samples nothing twice. */
import { RolloutFailure } from '../failures/failure.ts';
import type { PolicyConfig } from '../records/runconfig.ts';
import type { RequestedSampling } from '../records/trajectory.ts';
import type { CompletionReply } from './endpoint/completion.ts';
import type { PartialCompletion } from './endpoint/completionstream.ts';

/** More pieces than any answer of a healthy engine has: pieces beyond it are thrown away. */
const MOST_PARTS = 64;
/** Seeds are below it: see turnSeed(). */
const SEEDS = 2 ** 31;

export class PartialAnswer {
  readonly #texts: string[] = [];
  #ids = new Int32Array(0);
  #logProbs = new Float32Array(0);
  #parts = 0;

  /** Tokens that are there. */
  get tokens(): number {
    return this.#ids.length;
  }

  /** To be appended to the prompt. */
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

  /** What to ask for the rest: as many tokens less as are there. Null: nothing, the answer is as long as it may be. */
  remaining(asked: RequestedSampling): RequestedSampling | null {
    const { max_tokens: most, seed } = asked;
    if (this.tokens === 0) return asked;
    if (typeof most === 'number' && most <= this.tokens) return null;
    return {
      ...asked,
      ...(typeof most === 'number' ? { max_tokens: most - this.tokens } : {}),
      // The same seed would draw for these tokens what it drew for the first ones.
      ...(seed === undefined ? {} : { seed: (seed + this.tokens) % SEEDS }),
    };
  }

  /** The configuration for the rest: its least length, too, is that of the whole answer. */
  configOf(whole: PolicyConfig): PolicyConfig {
    const { min_tokens: least } = whole.extra_body;
    if (this.tokens === 0 || typeof least !== 'number') return whole;
    return { ...whole, extra_body: { ...whole.extra_body, min_tokens: Math.max(0, least - this.tokens) } };
  }

  /** The whole answer, given the last piece of it. `prompt` is that of the turn. */
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

  /** The answer as it is there, ended by its token limit. */
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

/** The prompt that the server tells ends with the tokens that were there of the answer: without them, it is the turn's. */
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
