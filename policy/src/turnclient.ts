/** Requests one turn after another from a policy, in any token mode. The caller provides transport and retries. */
import type { Message, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import type { Post } from './endpoint/post.ts';
import type { ModelReply } from './endpoint/reply.ts';

export type TurnClient = {
  /**
   * Sends one request. If the caller repeats the same messages after an error, mode `token-in` continues the received part of the answer,
   * and the other modes start again. Callers only append to `messages`, which contains the message of each reply unchanged.
   *
   * @throws errors of `post`, AnswerError, RolloutFailure `policy_tokens`
   */
  ask(messages: readonly Message[], tools: readonly ToolDefinition[], post: Post): Promise<TurnReply>;
  /** Returns the number of received tokens of an interrupted answer; 0 if the next request starts the answer again. */
  storedTokens(): number;
  /** Returns the number of received tokens of the current answer, to measure speed. */
  generatedTokens(): number;
  /** Makes all later requests ask for answers without streaming. */
  stopStreaming(): void;
};

/** `asked`: the sampling of the request. `streamedTokens`: tokens counted in a stream that reported neither ids nor usage. */
export type TurnReply = ModelReply & { asked: RequestedSampling; streamedTokens?: number };
