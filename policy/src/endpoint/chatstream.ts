/** Assembles the deltas of a streamed chat completion into the message that the unstreamed answer would hold. */

import { MOST } from '@swefarm/shared';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { growableIds, growableLogProbs } from '../tokens/growable.ts';
import { parseIds, parseLogProbs } from '../tokens/ids.ts';
import { AnswerError } from './errors.ts';
import { type ModelReply, readMessage, requireFinished } from './reply.ts';
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

type ChatChoice = Untrusted<ChatCompletionChunk.Choice> & { token_ids?: unknown };
type CallDelta = Untrusted<ChatCompletionChunk.Choice.Delta.ToolCall>;
type Call = { id: string; name: string; arguments: string };
const MOST_CALLS = 1000;

export class ChatStream implements AnswerSink {
  readonly #reader = createChunkReader((chunk) => this.#onChunk(chunk));
  /** Text pieces by field, joined at the end. For a field that is neither text nor list, the last value wins. */
  readonly #texts = new Map<string, string[]>();
  readonly #lists = new Map<string, unknown[]>();
  readonly #others = new Map<string, unknown>();
  readonly #calls = new Map<number, Call>();
  readonly #ids = growableIds();
  readonly #logProbs = growableLogProbs();
  /** Whether any ids and log-probabilities came, and whether all of them could be read. */
  #hasIds = false;
  #hasLogProbs = false;
  #allLogProbs = true;
  #promptIds: Int32Array | null = null;
  #finishReason: string | null = null;
  #usage: ModelReply['usage'] = null;
  #chunks = 0;
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

  /** Tokens received so far: counted by ids, otherwise by chunks with text. */
  get tokens(): number {
    return Math.max(this.#ids.length, this.#chunks);
  }

  /**
   * The complete answer; call it when the stream has ended.
   *
   * @throws AnswerError as parseReply() does, and `cut_short` when the stream ended before the answer
   */
  end(): ModelReply {
    if (this.#finishReason === null) throw cutShortError(this.#ids.length);
    requireFinished(this.#finishReason);
    const calls = [...this.#calls]
      .sort(([a], [b]) => a - b)
      .map(([, { id, ...called }]) => ({ id, function: called }));
    const texts = [...this.#texts]
      .map(([name, pieces]) => [name, pieces.join('')])
      // The first delta has an empty content. The unstreamed answer has no content when it only calls tools.
      .filter(([name, text]) => name !== 'content' || text !== '' || calls.length === 0);
    const fields = Object.fromEntries([...this.#others, ...this.#lists, ...texts]);
    return {
      message: readMessage({ ...fields, tool_calls: calls }),
      finish_reason: this.#finishReason,
      usage: this.#usage,
      prompt_token_ids: this.#promptIds,
      generation_token_ids: this.#hasIds ? this.#ids.all() : null,
      generation_log_probs: this.#hasLogProbs && this.#allLogProbs ? this.#logProbs.all() : null,
    };
  }

  #onChunk({ json, promptIds }: Chunk): void {
    requireNoError(json);
    this.#promptIds ??= promptIds;
    this.#usage = parseUsage(json.usage) ?? this.#usage;
    const choice: ChatChoice | null = choiceOf(json);
    if (choice === null) return;
    this.#onTokens(choice);
    const delta = Object.entries(choice.delta ?? {});
    for (const [name, value] of delta) this.#onField(name, value);
    if (delta.some(([name, value]) => name !== 'role' && value !== '')) this.#chunks++;
    if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason;
    if (this.#characters > MOST.textBytes || this.#ids.length > MOST.tokens)
      throw new AnswerError('garbage', 'an answer beyond all bounds');
  }

  #onTokens({ token_ids, logprobs }: ChatChoice): void {
    const ids = parseIds(token_ids);
    if (ids) this.#ids.push(ids);
    this.#hasIds ||= ids !== null;
    const { content } = (logprobs ?? {}) as Untrusted<ChatCompletionChunk.Choice.Logprobs>;
    if (!Array.isArray(content)) return;
    this.#hasLogProbs = true;
    const values = parseLogProbs(content.map((entry: { logprob?: unknown } | null) => entry?.logprob));
    if (values) this.#logProbs.push(values);
    else this.#allLogProbs = false;
  }

  #onField(name: string, value: unknown): void {
    if (name === 'role' || value === null || value === undefined) return;
    if (name === 'tool_calls') {
      if (Array.isArray(value)) this.#onCalls(value);
    } else if (typeof value === 'string') {
      this.#characters += value.length;
      append(this.#texts, name, [value]);
    } else if (Array.isArray(value)) append(this.#lists, name, value as unknown[]);
    else this.#others.set(name, value);
  }

  /** Calls arrive in pieces by index: the first piece has id and name, the arguments follow bit by bit. */
  #onCalls(deltas: readonly (CallDelta | null)[]): void {
    for (const [place, delta] of deltas.entries()) {
      const index = typeof delta?.index === 'number' ? delta.index : place;
      const call = this.#calls.get(index) ?? { id: '', name: '', arguments: '' };
      if (!this.#calls.has(index) && this.#calls.size >= MOST_CALLS)
        throw new AnswerError('garbage', `an answer with over ${MOST_CALLS} tool calls`);
      this.#calls.set(index, call);
      const called = (delta?.function ?? {}) as Untrusted<ChatCompletionChunk.Choice.Delta.ToolCall.Function>;
      const { name, arguments: args } = called;
      if (typeof delta?.id === 'string' && delta.id !== '') call.id = delta.id;
      // Some servers repeat the name with each piece.
      if (typeof name === 'string' && name !== call.name) call.name += name;
      if (typeof args === 'string') call.arguments += args;
      else if (args !== undefined && args !== null) call.arguments = JSON.stringify(args);
    }
  }
}

function append<T>(lists: Map<string, T[]>, name: string, items: readonly T[]): void {
  const list = lists.get(name) ?? [];
  for (const item of items) list.push(item);
  lists.set(name, list);
}
