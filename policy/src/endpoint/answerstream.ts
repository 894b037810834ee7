/** Reads the parts of a stream that chat and text completions share: events, tokens, usage, errors and the end. */
import { MOST } from '@swefarm/shared';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { growableIds, growableLogProbs } from '../tokens/growable.ts';
import { extractPromptIds, parseIds } from '../tokens/ids.ts';
import { AnswerError } from './errors.ts';
import { createEventReader } from './events.ts';
import { parseJson } from './reply.ts';
import type { AnswerSink } from './stream.ts';
import { parseUsage, type Usage } from './usage.ts';

/** Unchecked endpoint data with the field names of the SDK's type. */
export type Untrusted<T> = { readonly [K in keyof T]?: unknown };
/** Streamed choice with the ids of its new tokens, which the SDK's type lacks. */
export type StreamedChoice<T> = Untrusted<T> & { token_ids?: unknown };
type StreamedChunk = Untrusted<ChatCompletionChunk> & { error?: unknown };

/** @typeParam C the SDK's type of a choice */
export abstract class AnswerStream<C> implements AnswerSink {
  protected readonly ids = growableIds();
  protected readonly logProbs = growableLogProbs();
  /** False after a chunk whose log-probabilities are unreadable or, in text completions, missing. */
  protected allLogProbs = true;
  protected promptIds: Int32Array | null = null;
  protected usage: Usage | null = null;
  /** Number of received characters of text, which subclasses count in `onChoice`. */
  protected characters = 0;
  #finishReason: string | null = null;
  #hadEvents = false;
  #isDone = false;
  readonly #read = createEventReader((data) => this.#onEvent(data));

  protected abstract onChoice(choice: StreamedChoice<C>): void;

  take(bytes: Uint8Array): boolean {
    this.#hadEvents = false;
    this.#read(bytes);
    return this.#hadEvents;
  }

  get done(): boolean {
    return this.#isDone;
  }

  get finished(): boolean {
    return this.#finishReason !== null;
  }

  get tokens(): number {
    return this.ids.length;
  }

  /** Returns why the answer ended. Throws AnswerError `cut_short` if the stream ended before the answer. */
  protected requireFinishReason(): string {
    if (this.#finishReason !== null) return this.#finishReason;
    const message = `the stream ended before the answer did, after ${this.ids.length} tokens`;
    throw new AnswerError('cut_short', message);
  }

  /** Appends the ids of a chunk and returns them; null if the chunk has none. */
  protected pushIds({ token_ids }: StreamedChoice<C>): Int32Array | null {
    const ids = parseIds(token_ids);
    if (ids) this.ids.push(ids);
    return ids;
  }

  #onEvent(data: Buffer): void {
    if (this.#isDone) return;
    this.#hadEvents = true;
    if (data.length === 6 && data.toString('latin1') === '[DONE]') {
      this.#isDone = true;
      return;
    }
    // Only one of the first chunks contains the ids of the prompt, so later chunks are not searched for ids.
    const { text, ids } = this.promptIds
      ? { text: data.toString('utf8'), ids: null }
      : extractPromptIds(data);
    const chunk = parseJson(text);
    if (typeof chunk !== 'object' || chunk === null)
      throw new AnswerError('garbage', `a chunk of the stream is no object: ${text.slice(0, 100)}`);
    this.promptIds ??= ids;
    this.#onChunk(chunk);
  }

  #onChunk(chunk: StreamedChunk): void {
    requireNoError(chunk);
    this.usage = parseUsage(chunk.usage) ?? this.usage;
    const choice = choiceOf(chunk);
    if (choice === null) return;
    this.onChoice(choice as StreamedChoice<C>);
    if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason;
    if (this.characters > MOST.textBytes || this.ids.length > MOST.tokens)
      throw new AnswerError('garbage', 'an answer beyond all bounds');
  }
}

/** @throws AnswerError `broken_off` for a chunk that contains an error instead of an answer */
function requireNoError({ error }: StreamedChunk): void {
  if (error === undefined || error === null) return;
  const { message } = error as { message?: unknown };
  const reason = typeof message === 'string' ? message : JSON.stringify(error);
  throw new AnswerError('broken_off', `the engine broke the stream off: ${reason.slice(0, 200)}`);
}

/** Returns the first choice of a chunk; null if there is none, for example in the chunk with the usage. */
function choiceOf({ choices }: StreamedChunk): Untrusted<ChatCompletionChunk.Choice> | null {
  if (!Array.isArray(choices)) return null;
  const found = (choices as (Untrusted<ChatCompletionChunk.Choice> | null)[]).find(
    (choice) => choice !== null && typeof choice === 'object' && (choice.index ?? 0) === 0,
  );
  return found ?? null;
}
