/** Requests one turn after another from a policy, in any token mode. The caller provides transport and retries. */
import type { Message, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import type { Post } from './endpoint/post.ts';
import type { ModelReply } from './endpoint/reply.ts';

export type TurnClient = {
  /**
   * Sends one request. After an error the caller may repeat the same messages: mode `token-in` continues the received part of
   * the answer, the other modes start again. `messages` only grow from call to call, and contain the message of each reply
   * unchanged.
   *
   * @throws errors of `post`, AnswerError, RolloutFailure `policy_tokens`
   */
  ask(messages: readonly Message[], tools: readonly ToolDefinition[], post: Post): Promise<TurnReply>;
  /** Received tokens of an answer that broke off; 0 when the next request starts again. */
  storedTokens(): number;
  /** Tokens received of the current answer, to measure speed. */
  generatedTokens(): number;
  /** All later requests ask for unstreamed answers. */
  stopStreaming(): void;
};

/** `asked`: the sampling of the request. `streamedTokens`: tokens counted in a stream that reported neither ids nor usage. */
export type TurnReply = ModelReply & { asked: RequestedSampling; streamedTokens?: number };
