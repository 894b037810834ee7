/** Requests one turn after another from a policy, in any token mode; the caller provides transport and retries. */
import type { Message, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import type { Post } from './endpoint/post.ts';
import type { ModelReply } from './endpoint/reply.ts';

export type TurnClient = {
  /**
   * Sends one request. After a call that threw, the same messages may be asked again: mode `token-in` keeps the received tokens of the
   * answer and continues it, other modes start anew. `messages` only grow from call to call, and contain the message of
   * each reply unchanged. Throws what `post` throws, AnswerError, RolloutFailure `policy_tokens`.
   */
  ask(messages: readonly Message[], tools: readonly ToolDefinition[], post: Post): Promise<TurnReply>;
  /** Tokens kept of an answer that broke off; 0 when the next request starts anew. */
  keptTokens(): number;
  /** Tokens received of the current answer, complete or not, to measure speed. */
  generatedTokens(): number;
  /** Stops streaming: all later requests ask for unstreamed answers. */
  stopStreaming(): void;
};

/**
 * An answer, and the sampling of its own request. `streamedTokens`: tokens counted in a stream that reported neither
 * ids nor usage.
 */
export type TurnReply = ModelReply & { asked: RequestedSampling; streamedTokens?: number };
