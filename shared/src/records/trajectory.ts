/**
 * Everything said in a rollout. History is append-only: nothing is truncated, summarised or rewritten.
 * Token ids are stored once: per turn only the new suffix of the prompt and what was generated.
 */
import { z } from 'zod';
import type { Picture } from './picture.ts';
import type { Sampling } from './sampling.ts';

export const ExitStatus = z.enum(['submitted', 'turn_limit', 'time_limit', 'context_limit', 'format_limit']);
export type ExitStatus = z.infer<typeof ExitStatus>;

/** Which limit of tokens ended a rollout: a setting of the run, or the server's own (`endpoint`). */
export type TokenLimit = 'context_limit' | 'max_sequence_tokens' | 'max_tokens' | 'endpoint';

/** A chat message as sent to, or received from, the endpoint; unknown fields of the endpoint are kept. */
export const Message = z.looseObject({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string().nullable(),
  tool_calls: z
    .array(
      z.object({
        id: z.string(),
        type: z.literal('function'),
        function: z.object({ name: z.string(), arguments: z.string() }),
      }),
    )
    .optional(),
  tool_call_id: z.string().optional(),
  reasoning_content: z.string().optional(),
});
/** `pictures`: of a message that the farm made; a model is sent them as parts after the text. */
export type Message = z.infer<typeof Message> & { pictures?: readonly Picture[] };

export type ExpertType = 'int8' | 'uint8' | 'int16' | 'uint16' | 'int32';

/**
 * The experts that the model's router chose, one row a token: ids of `layers` x `top_k` experts. Only rows that no earlier turn has; the
 * first of them replaces what an earlier turn had there, since the last token of an answer is routed when the next prompt is read.
 */
export type TurnExperts = {
  dtype: ExpertType;
  layers: number;
  top_k: number;
  /** The token, counted from the start of the prompt, whose row is the first. */
  start: number;
  /** The ids' bytes, little-endian. */
  rows: Int8Array;
};

/** Token ids and log-probabilities of one turn; equal lengths of the last two. */
export type TurnTokens = {
  /** How many tokens of earlier turns (prompt and generation) this turn's prompt begins with. */
  prefix_length: number;
  /** The tokens of the prompt after that prefix. */
  prompt_suffix: Int32Array;
  generation: Int32Array;
  log_probs: Float32Array;
  /** Absent where the run keeps none, or the endpoint tells none. */
  routed_experts?: TurnExperts;
};

export type CommandRecord = {
  command: string;
  /** Null when it was killed by its time limit or the shell was lost. */
  exit_code: number | null;
  seconds: number;
  output_bytes: number;
  /** Why the observation is not simply output and exit code. */
  note: 'timed_out' | 'shell_reopened' | 'killed_by_limit' | null;
};

/** `max_tokens`: after it was held to the room that was left; null: all that was left, by the server's own count. */
export type RequestedSampling = { max_tokens?: number | null; seed?: number };
/** Tokens of one answer that one policy version sampled; null: not known, or it changed while they were. */
export type Span = { version: string | null; tokens: number };

export type Turn = {
  /** Index in `messages` of the assistant's message. */
  message: number;
  finish_reason: string | null;
  model_seconds: number;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
  policy_version: { start: string | null; end: string | null };
  /** What this request alone asked for; absent where the run sets neither. */
  asked?: RequestedSampling;
  /** The endpoint that answered, the last one where several did. */
  endpoint?: string;
  /** The generation in the order it was sampled: several when it was broken off and gone on with. Absent without token ids. */
  spans?: Span[];
  tokens: TurnTokens | null;
  commands: CommandRecord[];
};

/** A tool as the endpoint is told of it. */
export type ToolDefinition = {
  type: 'function';
  function: { name: string; description: string; parameters: Record<string, unknown> };
};

export type Trajectory = {
  format: 'swefarm-trajectory-1';
  token_mode: 'echo' | 'token-in' | 'text' | null;
  model: string | null;
  endpoint: string | null;
  /** What the policy was asked to sample with; absent: no policy was asked. */
  sampling?: Sampling;
  /** What the policy was shown beside the messages; absent: no tools. */
  tools?: ToolDefinition[];
  messages: Message[];
  turns: Turn[];
  exit_status: ExitStatus | null;
  /** Of exit status `context_limit`. */
  limit?: TokenLimit;
  /** Whether each prompt with token ids continued all tokens before it; absent: no turn has token ids. */
  contiguous?: boolean;
};
