/** Reads a streamed text completion of vLLM or SGLang chunk by chunk: each chunk holds new text, ids and log-probabilities. */

import { MOST } from '@swefarm/shared';
import type { CompletionChoice } from 'openai/resources/completions';
import { growableIds, growableLogProbs } from '../tokens/growable.ts';
import { parseIds, parseLogProbs } from '../tokens/ids.ts';
import { type CompletionReply, missingIdsFailure } from './completion.ts';
import { AnswerError } from './errors.ts';
import {
  type AnswerSink,
  type Chunk,
  choiceOf,
  createChunkReader,
  cutShortError,
  requireNoError,
  type Untrusted,
} from './stream.ts';
import { parseUsage } from './usage.ts';

/** The tokens received of an answer, with their log-probabilities and text; the lists have equal lengths. */
export type PartialCompletion = { text: string; ids: Int32Array; logProbs: Float32Array };

type TextChoice = Untrusted<CompletionChoice> & { token_ids?: unknown };

export class CompletionStream implements AnswerSink {
  readonly #reader = createChunkReader((chunk) => this.#onChunk(chunk));
  readonly #texts: string[] = [];
  readonly #ids = growableIds();
  readonly #logProbs = growableLogProbs();
  /** False once a chunk brought text without its ids. */
  #allIds = true;
  #allLogProbs = true;
  /** The last point at which the text covers all ids received, as numbers of texts and of tokens. */
  #whole = { texts: 0, tokens: 0 };
  #promptIds: Int32Array | null = null;
  #finishReason: string | null = null;
  #usage: CompletionReply['usage'] = null;
  #characters = 0;

  take(bytes: Uint8Array): boolean {
    return this.#reader.take(bytes);
  }

  get done(): boolean {
    return this.#reader.done;
  }

  get finished(): boolean {
    return this.#finishReason !== null;
  }

  /** Tokens received so far. */
  get tokens(): number {
    return this.#ids.length;
  }

  /**
   * The answer up to the last chunk whose text covers all its ids; null unless ids and log-probabilities are complete up to there.
   * A server sends ids at once but holds text back: an incomplete character, and what may begin a `stop` text.
   */
  part(): PartialCompletion | null {
    const { texts, tokens } = this.#whole;
    const complete = this.#allIds && this.#allLogProbs && this.#ids.length === this.#logProbs.length;
    if (!complete || tokens === 0) return null;
    return {
      text: this.#texts.slice(0, texts).join(''),
      ids: this.#ids.all().slice(0, tokens),
      logProbs: this.#logProbs.all().slice(0, tokens),
    };
  }

  /**
   * The complete answer; call it when the stream has ended.
   *
   * @throws AnswerError `cut_short` when the stream ended before the answer; RolloutFailure `policy_tokens` when it had no ids
   */
  end(): CompletionReply {
    if (this.#finishReason === null) throw cutShortError(this.#ids.length);
    if (!this.#allIds) throw missingIdsFailure();
    return {
      text: this.#texts.join(''),
      finish_reason: this.#finishReason,
      usage: this.#usage,
      prompt_token_ids: this.#promptIds,
      generation_token_ids: this.#ids.all(),
      generation_log_probs: this.#allLogProbs ? this.#logProbs.all() : null,
    };
  }

  #onChunk({ json, promptIds }: Chunk): void {
    requireNoError(json);
    this.#promptIds ??= promptIds;
    this.#usage = parseUsage(json.usage) ?? this.#usage;
    const choice: TextChoice | null = choiceOf(json);
    if (choice === null) return;
    const { text } = choice;
    if (typeof text !== 'string') throw new AnswerError('garbage', 'a chunk of the stream has no text');
    if (text !== '') this.#texts.push(text);
    this.#characters += text.length;
    const tokens = this.#onTokens(choice, text);
    if (endsWithItsTokens(text, tokens, choice.logprobs))
      this.#whole = { texts: this.#texts.length, tokens: this.#ids.length };
    if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason;
    if (this.#characters > MOST.textBytes || this.#ids.length > MOST.tokens)
      throw new AnswerError('garbage', 'an answer beyond all bounds');
  }

  /** Counts the tokens of a chunk. */
  #onTokens({ token_ids, logprobs }: TextChoice, text: string): number {
    const ids = parseIds(token_ids);
    if (ids) this.#ids.push(ids);
    else if (text !== '') this.#allIds = false;
    const { token_logprobs: scores } = (logprobs ?? {}) as Untrusted<CompletionChoice.Logprobs>;
    const values = parseLogProbs(scores);
    if (values) this.#logProbs.push(values);
    // A chunk without tokens may omit the list. An unreadable list makes all later log-probabilities unusable.
    else if (ids?.length || (scores !== undefined && scores !== null)) this.#allLogProbs = false;
    return ids?.length ?? 0;
  }
}

/** Whether a chunk's text covers all its ids: it ends as its last token does; without token texts, it must have exactly one token. */
function endsWithItsTokens(text: string, tokens: number, logProbs: unknown): boolean {
  if (text === '' || text.endsWith('\ufffd')) return false;
  const { tokens: texts } = (logProbs ?? {}) as Untrusted<CompletionChoice.Logprobs>;
  const last: unknown = Array.isArray(texts) ? texts.at(-1) : undefined;
  if (typeof last !== 'string' || last.startsWith('token_id:')) return tokens <= 1;
  return last !== '' && text.endsWith(last);
}
