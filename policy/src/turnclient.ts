/** Requests one turn after another from a policy, in any token mode. The caller provides transport and retries. */
import type { Message, RequestedSampling, ToolDefinition } from '@swefarm/shared';
import type { PartialCompletion } from './endpoint/completionstream.ts';
import type { Continued, TurnPoint } from './endpoint/continued.ts';
import type { Post } from './endpoint/post.ts';
import type { ModelReply } from './endpoint/reply.ts';

/** Received part of an answer. `prompt`: SHA-256 of the prompt's ids. */
export type BegunReply = PartialCompletion & { prompt: string };

export type TurnOptions = {
  /** Number of the answer, from 1, from which its seed and the ids of its calls are derived; absent: its number in the conversation. */
  answer?: number;
  /** Maximum tokens of the answer, in addition to the limits of the run; null or absent: no further limit. */
  maxTokens?: number | null;
};

export type TurnClient = {
  /**
   * Sends one request. If the caller repeats the same messages after an error, mode `token-in` continues the received part of the answer,
   * and the other modes start again. Callers only append to `messages`: the answer to n messages is message n of later requests.
   *
   * @throws errors of `post`, AnswerError, RolloutFailure `policy_tokens`
   */
  ask(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
    options?: TurnOptions,
  ): Promise<TurnReply>;
  /** Returns the number of received tokens of an interrupted answer; 0 if the next request starts the answer again. */
  storedTokens(): number;
  /** Returns the number of received tokens of the current answer, to measure speed. */
  generatedTokens(): number;
  /**
   * Returns the received part of the current answer. The part is empty if its tokens are damaged. Returns null if no answer is in progress, or
   * if no client can continue it. The method is absent in clients that never continue an answer.
   */
  begun?(): BegunReply | null;
  /** Starts the next answer with a part that another client received. Returns false and ignores the part if the prompt differs. Throws as `ask`. */
  resume?(
    begun: BegunReply,
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    post: Post,
  ): Promise<boolean>;
  /** Makes all later requests ask for answers without streaming. */
  stopStreaming(): void;
};

/**
 * `asked`: the sampling of the request. `streamedTokens`: tokens counted in a stream that reported neither ids nor usage. `text`: what was
 * sampled; absent if the server parsed the answer.
 */
export type TurnReply = ModelReply & {
  asked: RequestedSampling;
  after: TurnPoint;
  streamedTokens?: number;
  text?: string;
};

/** The clients of one rollout, which share renderer and limits. */
export type TurnClients = {
  /** Opens a client for a new conversation, or for one that continues after an answer of any client. */
  open(after?: Continued): TurnClient;
  /** Returns the number of tokens of a prompt; null: only the server knows. Throws as `ask`. */
  countTokens:
    | ((messages: readonly Message[], tools: readonly ToolDefinition[], post: Post) => Promise<number>)
    | null;
};
