/**
 * The trajectory of a rollout. Its history is append-only. Token ids are stored once: for each turn the new suffix of the prompt and the
 * generation.
 */
import { z } from 'zod';
import type { Picture } from './picture.ts';
import type { Sampling } from './sampling.ts';

export const ExitStatus = z.enum(['submitted', 'turn_limit', 'time_limit', 'context_limit', 'format_limit']);
export type ExitStatus = z.infer<typeof ExitStatus>;

/** The token limit that ended a rollout: a setting of the run, or the server's (`endpoint`). */
export type TokenLimit = 'context_limit' | 'max_sequence_tokens' | 'max_tokens' | 'endpoint';

/** A chat message, with unknown fields of the endpoint. */
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
/** `pictures`: sent to the model as parts after the text. */
export type Message = z.infer<typeof Message> & { pictures?: readonly Picture[] };

export type ExpertType = 'int8' | 'uint8' | 'int16' | 'uint16' | 'int32';

/**
 * The experts of the model's router: one row of `layers` x `top_k` ids for each new token. The first row replaces an earlier turn's
 * last row, because the last token of an answer is routed with the next prompt.
 */
export type TurnExperts = {
  dtype: ExpertType;
  layers: number;
  top_k: number;
  /** Position in the prompt of the first row's token. */
  start: number;
  /** Ids, little-endian. */
  rows: Int8Array;
};

/** Token ids and log-probabilities of one turn; `generation` and `log_probs` have equal lengths. */
export type TurnTokens = {
  /** Number of earlier turns' tokens with which the prompt begins. */
  prefix_length: number;
  /** Tokens of the prompt after the prefix. */
  prompt_suffix: Int32Array;
  generation: Int32Array;
  log_probs: Float32Array;
  routed_experts?: TurnExperts;
};

/** Why an observation is not only output and exit code. */
export const CommandNote = z.enum(['timed_out', 'shell_reopened', 'killed_by_limit']);

export const CommandRecord = z.object({
  command: z.string(),
  exit_code: z.number().nullable().meta({ description: 'null: it was killed, or the shell was lost' }),
  seconds: z.number(),
  output_bytes: z.number(),
  note: CommandNote.nullable(),
});
export type CommandRecord = z.infer<typeof CommandRecord>;

/** `max_tokens`: limited to the remaining tokens; null: all remaining ones, by the server's count. */
export type RequestedSampling = { max_tokens?: number | null; seed?: number };
/** Tokens that one policy version sampled; null: unknown, or the version changed meanwhile. */
export type Span = { version: string | null; tokens: number };

export type Turn = {
  /** Index in `messages` of the assistant's message. */
  message: number;
  finish_reason: string | null;
  model_seconds: number;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
  policy_version: { start: string | null; end: string | null };
  /** Sampling of this request only; absent if the run sets none. */
  asked?: RequestedSampling;
  /** The endpoint of the answer, or of its last part. */
  endpoint?: string;
  /** Parts of the generation in order; several after an interruption. Absent without token ids. */
  spans?: Span[];
  tokens: TurnTokens | null;
  commands: CommandRecord[];
};

export type ToolDefinition = {
  type: 'function';
  function: { name: string; description: string; parameters: Record<string, unknown> };
};

export type Trajectory = {
  format: 'swefarm-trajectory-1';
  token_mode: 'echo' | 'token-in' | 'text' | null;
  model: string | null;
  endpoint: string | null;
  /** Absent without a policy. */
  sampling?: Sampling;
  tools?: ToolDefinition[];
  messages: Message[];
  turns: Turn[];
  exit_status: ExitStatus | null;
  /** For exit status `context_limit`. */
  limit?: TokenLimit;
  /** Whether each prompt continues all earlier tokens; absent without token ids. */
  contiguous?: boolean;
};
