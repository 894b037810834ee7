/** Reads a streamed text completion of vLLM or SGLang: each chunk has new text, ids and log-probabilities. */

import type { CompletionChoice } from 'openai/resources/completions';
import { parseLogProbs } from '../tokens/ids.ts';
import { AnswerStream, type StreamedChoice, type Untrusted } from './answerstream.ts';
import { type CompletionReply, missingIdsFailure } from './completion.ts';
import { AnswerError } from './errors.ts';

/** Received part of an answer: its tokens and their text. `ids` and `logProbs` have equal lengths. */
export type PartialCompletion = { text: string; ids: Int32Array; logProbs: Float32Array };

export class CompletionStream extends AnswerStream<CompletionChoice> {
  readonly #texts: string[] = [];
  /** False after a chunk with text and without ids. */
  #allIds = true;
  /** Number of texts and of tokens at the last point where the text covers all received ids. */
  #whole = { texts: 0, tokens: 0 };

  /**
   * Returns the answer up to the last chunk whose text covers all its ids; null if ids or log-probabilities are missing. Servers send ids
   * at once, but delay the text of an incomplete character or of a possible `stop` text.
   */
  part(): PartialCompletion | null {
    const { texts, tokens } = this.#whole;
    const complete = this.#allIds && this.allLogProbs && this.ids.length === this.logProbs.length;
    if (!complete || tokens === 0) return null;
    return {
      text: this.#texts.slice(0, texts).join(''),
      ids: this.ids.all().slice(0, tokens),
      logProbs: this.logProbs.all().slice(0, tokens),
    };
  }

  /**
   * Returns the complete answer after the end of the stream.
   *
   * @throws AnswerError `cut_short` if the stream ended before the answer; RolloutFailure `policy_tokens` if the stream had no ids
   */
  end(): CompletionReply {
    const finishReason = this.requireFinishReason();
    if (!this.#allIds) throw missingIdsFailure();
    return {
      text: this.#texts.join(''),
      finish_reason: finishReason,
      usage: this.usage,
      prompt_token_ids: this.promptIds,
      generation_token_ids: this.ids.all(),
      generation_log_probs: this.allLogProbs ? this.logProbs.all() : null,
    };
  }

  protected override onChoice(choice: StreamedChoice<CompletionChoice>): void {
    const { text, logprobs } = choice;
    if (typeof text !== 'string') throw new AnswerError('garbage', 'a chunk of the stream has no text');
    if (text !== '') this.#texts.push(text);
    this.characters += text.length;
    const ids = this.pushIds(choice);
    if (ids === null && text !== '') this.#allIds = false;
    const { token_logprobs, tokens } = (logprobs ?? {}) as Untrusted<CompletionChoice.Logprobs>;
    const values = parseLogProbs(token_logprobs);
    if (values) this.logProbs.push(values);
    // A chunk without tokens may omit the list. An unreadable list makes the log-probabilities of the whole answer unusable.
    else if (ids?.length || (token_logprobs !== undefined && token_logprobs !== null))
      this.allLogProbs = false;
    if (coversItsTokens(text, ids?.length ?? 0, tokens))
      this.#whole = { texts: this.#texts.length, tokens: this.ids.length };
  }
}

/**
 * Returns whether the text of a chunk covers all its ids: the text ends with the text of the last token. If the server sends no token
 * texts, the chunk must have at most one token. `texts`: the text of each token.
 */
function coversItsTokens(text: string, count: number, texts: unknown): boolean {
  if (text === '' || text.endsWith('\ufffd')) return false;
  const last: unknown = Array.isArray(texts) ? texts.at(-1) : undefined;
  if (typeof last !== 'string' || last.startsWith('token_id:')) return count <= 1;
  return last !== '' && text.endsWith(last);
}
