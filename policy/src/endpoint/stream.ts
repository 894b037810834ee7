/** Decides whether answers are streamed, and defines the receiver of a stream. */

import type { PolicyConfig } from '@swefarm/shared';
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions';

/** Receives the bytes of one streamed answer from the transport. */
export type AnswerSink = {
  /** Returns true if the bytes contained an event. Comments of proxies do not count. */
  take(bytes: Uint8Array): boolean;
  /** True after `[DONE]`: later bytes are ignored. */
  readonly done: boolean;
  /** True if the answer is complete, even if the connection fails later. */
  readonly finished: boolean;
};

/** Returns whether requests ask for streams. NeMo RL's server (mode `echo`) sends ids only with whole messages; streams have no experts. */
export const wantsStream = ({ stream, token_mode, routed_experts }: PolicyConfig): boolean =>
  stream === 'on' || (stream === 'auto' && token_mode !== 'echo' && routed_experts !== 'require');

export const streamFields = (
  config: PolicyConfig,
): Pick<ChatCompletionCreateParams, 'stream' | 'stream_options'> =>
  wantsStream(config) ? { stream: true, stream_options: { include_usage: true } } : {};
