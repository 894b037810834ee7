/** Assembles the deltas of a streamed chat completion into the message of the unstreamed answer. */

import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { parseLogProbs } from '../tokens/ids.ts';
import { AnswerStream, type StreamedChoice, type Untrusted } from './answerstream.ts';
import { AnswerError } from './errors.ts';
import { type ModelReply, readMessage, requireFinished } from './reply.ts';

type ChatChoice = StreamedChoice<ChatCompletionChunk.Choice>;
type CallDelta = Untrusted<ChatCompletionChunk.Choice.Delta.ToolCall>;
type Call = { id: string; name: string; arguments: string };
const MOST_CALLS = 1000;

export class ChatStream extends AnswerStream<ChatCompletionChunk.Choice> {
  /** Fields of the message: joined texts, joined lists, and the last value of each other field. */
  readonly #fields = new Map<string, unknown>();
  readonly #calls = new Map<number, Call>();
  #hasIds = false;
  #hasLogProbs = false;
  #chunks = 0;

  /** Number of received tokens: the number of ids, or of chunks with content if the server sends no ids. */
  override get tokens(): number {
    return Math.max(this.ids.length, this.#chunks);
  }

  /**
   * Returns the complete answer after the end of the stream.
   *
   * @throws the errors of parseReply(), and AnswerError `cut_short` if the stream ended before the answer
   */
  end(): ModelReply {
    const finishReason = this.requireFinishReason();
    requireFinished(finishReason);
    const calls = [...this.#calls]
      .sort(([a], [b]) => a - b)
      .map(([, { id, ...called }]) => ({ id, function: called }));
    const fields = Object.fromEntries(this.#fields);
    // The first delta has an empty content. An unstreamed answer that only calls tools has no content.
    if (fields.content === '' && calls.length > 0) delete fields.content;
    return {
      message: readMessage({ ...fields, tool_calls: calls }),
      finish_reason: finishReason,
      usage: this.usage,
      prompt_token_ids: this.promptIds,
      generation_token_ids: this.#hasIds ? this.ids.all() : null,
      generation_log_probs: this.#hasLogProbs && this.allLogProbs ? this.logProbs.all() : null,
    };
  }

  protected override onChoice(choice: ChatChoice): void {
    if (this.pushIds(choice)) this.#hasIds = true;
    this.#onLogProbs(choice);
    const delta = Object.entries(choice.delta ?? {});
    for (const [name, value] of delta) this.#onField(name, value);
    if (delta.some(([name, value]) => name !== 'role' && value !== '')) this.#chunks++;
  }

  #onLogProbs({ logprobs }: ChatChoice): void {
    const { content } = (logprobs ?? {}) as Untrusted<ChatCompletionChunk.Choice.Logprobs>;
    if (!Array.isArray(content)) return;
    this.#hasLogProbs = true;
    const values = parseLogProbs(content.map((entry: { logprob?: unknown } | null) => entry?.logprob));
    if (values) this.logProbs.push(values);
    else this.allLogProbs = false;
  }

  #onField(name: string, value: unknown): void {
    if (name === 'role' || value === null || value === undefined) return;
    const before = this.#fields.get(name);
    if (name === 'tool_calls') {
      if (Array.isArray(value)) this.#onCalls(value);
    } else if (typeof value === 'string') {
      this.characters += value.length;
      this.#fields.set(name, typeof before === 'string' ? before + value : value);
    } else if (Array.isArray(value) && Array.isArray(before)) for (const item of value) before.push(item);
    else this.#fields.set(name, value);
  }

  /** The first piece of a call has id and name; the arguments follow in pieces with the same index. */
  #onCalls(deltas: readonly (CallDelta | null)[]): void {
    for (const [position, delta] of deltas.entries()) {
      const index = typeof delta?.index === 'number' ? delta.index : position;
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
