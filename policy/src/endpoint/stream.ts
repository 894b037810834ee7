/** Decides when an answer is streamed, and reads what all streams share: JSON chunks, the end, errors in between. */

import type { PolicyConfig } from '@swefarm/shared';
import type { ChatCompletionChunk, ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import { extractPromptIds } from '../tokens/ids.ts';
import { AnswerError } from './errors.ts';
import { createEventReader } from './events.ts';
import { parseJson } from './reply.ts';

/** Receives the bytes of an event stream from the transport as they arrive. */
export type StreamSink = {
  /** True when the bytes held an event; a proxy's comment does not count. */
  take(bytes: Uint8Array): boolean;
  /** True after `[DONE]`: later bytes are ignored. */
  readonly done: boolean;
};

/** The sink of one answer. */
export type AnswerSink = StreamSink & {
  /** True once the answer's end came: the answer is complete even if the connection fails later. */
  readonly finished: boolean;
};

/** Whether answers are requested as a stream. NeMo RL's server (mode `echo`) puts ids on whole messages only; streams carry no experts. */
export const wantsStream = ({ stream, token_mode, routed_experts }: PolicyConfig): boolean =>
  stream === 'on' || (stream === 'auto' && token_mode !== 'echo' && routed_experts !== 'require');

/** The request fields that ask for a stream. */
export const streamFields = (
  config: PolicyConfig,
): Pick<ChatCompletionCreateParams, 'stream' | 'stream_options'> =>
  wantsStream(config) ? { stream: true, stream_options: { include_usage: true } } : {};

/** Unchecked endpoint data with the field names of the SDK's type. */
export type Untrusted<T> = { readonly [K in keyof T]?: unknown };

/** One event: the chunk, and the prompt's ids where the event has them. */
type StreamedChunk = Untrusted<ChatCompletionChunk> & { error?: unknown };
export type Chunk = { json: StreamedChunk; promptIds: Int32Array | null };

/** Reads the events of one answer; ignores everything after `[DONE]`. */
export function createChunkReader(onChunk: (chunk: Chunk) => void): StreamSink {
  let hadEvents = false;
  let done = false;
  let promptSeen = false;
  const read = createEventReader((data) => {
    if (done) return;
    hadEvents = true;
    if (data.length === 6 && data.toString('latin1') === '[DONE]') {
      done = true;
      return;
    }
    // The prompt's ids come once, with the first chunks: later lines need no search for them.
    const { text, ids } = promptSeen ? { text: data.toString('utf8'), ids: null } : extractPromptIds(data);
    promptSeen ||= ids !== null;
    const json = parseJson(text);
    if (typeof json !== 'object' || json === null)
      throw new AnswerError('garbage', `a chunk of the stream is no object: ${text.slice(0, 100)}`);
    onChunk({ json, promptIds: ids });
  });
  return {
    take(bytes) {
      hadEvents = false;
      read(bytes);
      return hadEvents;
    },
    get done() {
      return done;
    },
  };
}

/** @throws AnswerError `broken_off` for a chunk that holds an error instead of an answer */
export function requireNoError({ error }: StreamedChunk): void {
  if (error === undefined || error === null) return;
  const { message } = error as { message?: unknown };
  const reason = typeof message === 'string' ? message : JSON.stringify(error);
  throw new AnswerError('broken_off', `the engine broke the stream off: ${reason.slice(0, 200)}`);
}

/** The first choice of a chunk; null where it has none, such as the chunk with the usage. */
export function choiceOf({ choices }: StreamedChunk): Untrusted<ChatCompletionChunk.Choice> | null {
  if (!Array.isArray(choices)) return null;
  for (const choice of choices as (Untrusted<ChatCompletionChunk.Choice> | null)[]) {
    if (choice !== null && typeof choice === 'object' && (choice.index ?? 0) === 0) return choice;
  }
  return null;
}

/** The error for a stream that ended before its answer did. */
export const cutShortError = (tokens: number): AnswerError =>
  new AnswerError('cut_short', `the stream ended before the answer did, after ${tokens} tokens`);
