/** Input and output of an agent. An agent returns how it ended; it throws faults of the infrastructure as RolloutFailure. */
import type { Continued, PolicyReply, TurnReply } from '@swefarm/policy';
import type { Shell } from '@swefarm/sandbox';
import type {
  AgentConfig,
  BegunAnswer,
  ExitStatus,
  Instance,
  Message,
  PolicyConfig,
  TokenLimit,
  ToolDefinition,
  Trajectory,
} from '@swefarm/shared';
import type { Pause } from './deadline.ts';

/** The prompt no longer fits the context of the endpoint or a limit of the run. After the first turn, this is no failure. */
export type ContextOverflow = {
  context_overflow: true;
  /** Limit that was reached; absent: the context of the endpoint. */
  of?: TokenLimit;
  message: string;
  seconds: number;
};

/** `after`: from where other lines of requests may continue. `text`: what was sampled, if the worker parsed it. */
export type LineReply = PolicyReply & Pick<TurnReply, 'after' | 'text'>;

/** The received part of an answer, without the observations before it. */
export type BegunReply = Omit<BegunAnswer, 'start' | 'observed' | 'exit_codes'>;

export type LineRequest = {
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  signal: AbortSignal;
  /** Number of the answer in the rollout, from 1; absent: in the line. */
  answer?: number;
  /** Most tokens of the answer beside the limits of the run; null or absent: no further limit. */
  maxTokens?: number | null;
  /** Part of the answer that an earlier attempt received. It is used only if the prompt is the same. Absent: no part. */
  begun?: BegunReply;
  /** Called when `begun` is used, before the request for the rest. */
  onResumed?: () => void;
  /** Called when a request is sent. `read` returns the received part of the answer; null: no client can continue the answer. */
  onBegin?: (read: () => BegunReply | null) => void;
};

/** Policy client of one rollout. Throws RolloutFailure `policy_*`; aborting the signal closes the request at the server. */
export interface Policy {
  readonly endpoint: string;
  readonly config: PolicyConfig;
  /** The agent's clocks stop while the trainer pauses the policy. */
  readonly pause: Pause;
  complete(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    signal: AbortSignal,
  ): Promise<PolicyReply | ContextOverflow>;
  /** Returns the tokens received so far and the seconds they took; null: not known. */
  throughput(): { tokens: number; seconds: number } | null;
  /** Returns the texts of token ids, for messages; null if the endpoint does not return them. */
  detokenize(ids: readonly number[], signal: AbortSignal): Promise<string[] | null>;
}

/** A policy that is asked by several lines of requests side by side. */
export interface PolicyOfLines extends Policy {
  /** Returns the most tokens of prompt and answer at the endpoint; null: not known. */
  modelLength(): Promise<number | null>;
  /**
   * Opens a line of requests beside the one of `complete`: callers append to its messages only, and send one request at a time. The lines
   * share endpoint, patience and pauses. `after`: the answer that the line continues; absent: it begins with a whole prompt.
   */
  openLine(after?: Continued): (request: LineRequest) => Promise<LineReply | ContextOverflow>;
  /** Returns the number of tokens of a prompt; null: not known. */
  countTokens(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    signal: AbortSignal,
  ): Promise<number | null>;
}

export type AgentTask = { instance: Instance; config: AgentConfig; workdir: string };

export type AgentDeps = {
  shell: Shell;
  policy: Policy;
  signal: AbortSignal;
  /** Called before each turn. The callback may abort the signal, for example when the rollout began with weights that are too old. */
  beforeTurn?: (trajectory: Trajectory) => void;
  /** Called with each recorded answer, before its commands run. */
  onAnswer?: (trajectory: Trajectory) => void;
  /** Judges a submit, after which the agent may go on; null: a submit ends the rollout. The agent's clock stops during the call. */
  onSubmit?: (submission: string | null) => Promise<Feedback | null>;
  /** Called after each turn to publish progress and record the trace. */
  onTurn?: (trajectory: Trajectory) => void;
};

/** Why a submit is not the last, for the template `feedback`. `tests`: names of failed tests, or nothing. */
export type Feedback = { why: string; tests: string; repository: string };

export type AgentEnd = {
  /** Null only when a limit killed the sandbox or a command broke it, so that the agent did not stop by itself. */
  exit_status: ExitStatus | null;
  /** Text after the sentinel, or the argument of submit_solution; null if there is neither, or if the text is incomplete. */
  submission: string | null;
  trajectory: Trajectory;
  cut_by_token_limit: boolean;
  /** Answers of a wrong form, without answers that the token limit cut; null: unknown. */
  malformed_answers: number | null;
  sandbox_killed: boolean;
  model_seconds: number;
  command_seconds: number;
};
