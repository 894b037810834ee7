/** Decides when an answer is streamed, and what receives the stream. */

import type { PolicyConfig } from '@swefarm/shared';
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions';

/** Receives the bytes of one streamed answer from the transport. */
export type AnswerSink = {
  /** True when the bytes contained an event; a proxy's comment does not count. */
  take(bytes: Uint8Array): boolean;
  /** True after `[DONE]`: later bytes are ignored. */
  readonly done: boolean;
  /** True once the answer is complete, even if the connection fails later. */
  readonly finished: boolean;
};

/** Whether answers are requested as a stream. NeMo RL's server (mode `echo`) returns ids only with whole messages; streams carry no experts. */
export const wantsStream = ({ stream, token_mode, routed_experts }: PolicyConfig): boolean =>
  stream === 'on' || (stream === 'auto' && token_mode !== 'echo' && routed_experts !== 'require');

/** The request fields that ask for a stream. */
export const streamFields = (
  config: PolicyConfig,
): Pick<ChatCompletionCreateParams, 'stream' | 'stream_options'> =>
  wantsStream(config) ? { stream: true, stream_options: { include_usage: true } } : {};
