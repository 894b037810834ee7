/** What asks a policy for one turn after the other, whatever its token mode; transport and retries are the caller's. */
import type { Message, RequestedSampling, ToolDefinition } from '../records/trajectory.ts';
import type { Post } from './endpoint/post.ts';
import type { ModelReply } from './endpoint/reply.ts';

export type TurnClient = {
  /**
   * Asks once. After a call that threw, the same messages may be asked again: in mode `token-in` the tokens that came of the answer
   * are kept and continued, else the client is as it was. `messages` only grow from call to call, and hold the message of
   * each reply as it was given. Throws what `post` throws, AnswerError, RolloutFailure `policy_tokens`.
   */
  ask(messages: readonly Message[], tools: readonly ToolDefinition[], post: Post): Promise<TurnReply>;
  /** Tokens that are kept of an answer that was broken off; 0 when the next request begins anew. */
  keptTokens(): number;
  /** Tokens that came of the present answer, whole or not: for whoever measures speed. */
  generatedTokens(): number;
  /** From now on no endpoint is asked for a stream. */
  stopStreaming(): void;
};

/**
 * An answer, and what its request alone asked for. `streamedTokens`: tokens that a stream was seen to bring, where it told neither
 * ids nor usage.
 */
export type TurnReply = ModelReply & { asked: RequestedSampling; streamedTokens?: number };
