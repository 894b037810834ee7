/**
 * The trajectory of a rollout. Messages are only appended. Each token id is stored once: a turn has the new end of the prompt and the
 * generated tokens.
 */
import { z } from 'zod';
import type { Picture } from './picture.ts';
import type { Sampling } from './sampling.ts';

export const ExitStatus = z.enum([
  'submitted',
  'turn_limit',
  'time_limit',
  'context_limit',
  'format_limit',
  'agent_error',
]);
export type ExitStatus = z.infer<typeof ExitStatus>;

/** The token limit that ended a rollout: a setting of the run, or (`endpoint`) a limit of the server. */
export type TokenLimit = 'context_limit' | 'max_sequence_tokens' | 'max_tokens' | 'endpoint';

/** A chat message; unknown fields of the endpoint are preserved. */
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
/** A chat message with pictures, which the model gets as parts after the text. */
export type Message = z.infer<typeof Message> & { pictures?: readonly Picture[] };

export type ExpertType = 'int8' | 'uint8' | 'int16' | 'uint16' | 'int32';

/**
 * The experts that the router of the model selected: a row of `layers` x `top_k` ids for each new token. The first row replaces the last
 * row of an earlier turn, because the last token of an answer is routed with the next prompt.
 */
export type TurnExperts = {
  dtype: ExpertType;
  layers: number;
  top_k: number;
  /** Position in the prompt of the token of the first row. */
  start: number;
  /** Ids as little-endian bytes of type `dtype`. */
  rows: Int8Array;
};

/** Token ids and log-probabilities of one turn; `generation` and `log_probs` have equal lengths. */
export type TurnTokens = {
  /** Number of tokens at the start of the prompt that earlier turns contain. */
  prefix_length: number;
  /** Tokens of the prompt after the prefix. */
  prompt_suffix: Int32Array;
  generation: Int32Array;
  log_probs: Float32Array;
  routed_experts?: TurnExperts;
};

/** Why an observation contains more than output and exit code. */
export const CommandNote = z.enum(['timed_out', 'shell_reopened', 'killed_by_limit']);

export const CommandRecord = z.object({
  command: z.string(),
  exit_code: z.number().nullable().meta({ description: 'null: it was killed, or the shell was lost' }),
  seconds: z.number(),
  output_bytes: z.number(),
  note: CommandNote.nullable(),
});
export type CommandRecord = z.infer<typeof CommandRecord>;

/** Sampling of one request. `max_tokens` is at most the number of remaining tokens; null: the server uses all remaining tokens. */
export type RequestedSampling = { max_tokens?: number | null; seed?: number };
/** Number of tokens that one policy version sampled; `version` is null if it is unknown or changed during sampling. */
export type Span = { version: string | null; tokens: number };

/** Kind of a request of another agent, and its match to the earlier requests. */
export type TurnRequest = {
  dialect: 'chat' | 'responses' | 'messages';
  /**
   * `continued`: the prompt is all tokens of an earlier answer and what follows it. Otherwise it was rendered whole; `other_tokens`: the
   * history continues, but the server's token ids of it do not.
   */
  matched: 'continued' | 'first' | 'other_tools' | 'other_prompt' | 'rewritten' | 'other_tokens';
  /** Whether the agent repeated an unreadable call in another form; the prompt has the sampled form. */
  repaired?: true;
  /** Number of further requests that got the same answer. */
  repeated?: number;
  /** Whether the agent received the complete answer. */
  delivered: boolean;
};

/**
 * `main`: works on the task. `subagent`: works for it, with a prompt of its own. `summary`: condenses a history. `side`: a title or the
 * like, without tools. `abandoned`: its last answer was never continued, but another answer to the same history was. `foreign`: asked by
 * another program than the agent.
 */
export const LineKind = z.enum(['main', 'subagent', 'summary', 'side', 'abandoned', 'foreign']);
export type LineKind = z.infer<typeof LineKind>;

/** A line of a rollout: requests each of which continues the one before. Each turn of a rollout is in exactly one line. */
export type Line = {
  /** `L1`, `L2`, … in the order of first answers. */
  id: string;
  kind: LineKind;
  /** The line, and the number of its turns and messages, that this line continues; null: the first prompt was rendered whole. */
  from: { line: string; turns: number; messages: number } | null;
  /** Reason for which the turns are not trained on; null: the turns are trained on. */
  masked: Exclude<LineKind, 'main'> | null;
  tools?: ToolDefinition[];
  /** The messages after those of `from`; `Turn.message` counts in them. */
  messages: Message[];
  turns: Turn[];
  contiguous?: boolean;
};

/** The turn from which a rollout branches off, counted from 1, of another rollout: it continues behind this turn. */
export const BranchPoint = z.object({ rollout_id: z.string(), turn: z.number().int().positive() });
export type BranchPoint = z.infer<typeof BranchPoint>;

export type Turn = {
  /** Index of the assistant's message in `messages`. */
  message: number;
  finish_reason: string | null;
  model_seconds: number;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
  policy_version: { start: string | null; end: string | null };
  /** Sampling keys of this request that differ between requests; absent: none. */
  asked?: RequestedSampling;
  /** Endpoint that sent the answer, or its last part. */
  endpoint?: string;
  /** Facts of the recording endpoint about the request of an agent that comes as a program; absent for agents of the farm. */
  request?: TurnRequest;
  /** Parts of the generation in order; an interrupted generation has several. Absent without token ids. */
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
  /** Sampling keys of the requests; absent without a policy. */
  sampling?: Sampling;
  tools?: ToolDefinition[];
  messages: Message[];
  turns: Turn[];
  exit_status: ExitStatus | null;
  /** The token limit that was reached, for exit status `context_limit`. */
  limit?: TokenLimit;
  /** Number of submits, if the run allows several. */
  submits?: number;
  /** Whether each prompt begins with all earlier tokens; absent without token ids. */
  contiguous?: boolean;
  /**
   * The lines of a rollout whose agent comes as a program, beside the first main line, whose messages and turns are those of the
   * trajectory; absent: that line is the only one.
   */
  lines?: Line[];
  /** Id of the line whose messages and turns the trajectory has; absent: `L1`. */
  line?: string;
  /** The first turns are those of this rollout, and trainers mask them; absent: all turns are its own. */
  branch_of?: BranchPoint;
};
