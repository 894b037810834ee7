/** What an agent is given and what it gives back. Ends are values; only infrastructure throws (RolloutFailure). */
import type {
  AgentConfig,
  ExitStatus,
  ExpertMode,
  Instance,
  Message,
  ModelReply,
  PolicyConfig,
  RequestedSampling,
  Sampling,
  Span,
  TokenLimit,
  ToolDefinition,
  Trajectory,
} from '@swefarm/shared';
import type { Shell } from '../sandbox/command.ts';
import type { Pause } from './pause.ts';

export type PolicyReply = ModelReply & {
  /** Without those in which the policy stood still. */
  seconds: number;
  /** Which one answered, the last part where it was several. */
  endpoint: string;
  policy_version: { start: string | null; end: string | null };
  /** What its request alone asked for. */
  asked?: RequestedSampling;
  /** Which weights made which tokens; absent when the endpoint sent no ids. */
  spans?: Span[];
};

/** The prompt no longer fits the context, by HTTP 400 of the endpoint or by the run's own limits: an end of the rollout, not a fault. */
export type ContextOverflow = {
  context_overflow: true;
  /** Whose limit it is; absent: the endpoint's. */
  of?: TokenLimit;
  message: string;
  seconds: number;
};

/** One endpoint for the whole rollout. Throws RolloutFailure policy_*; aborting the signal closes the request at the server. */
export interface Policy {
  readonly endpoint: string;
  readonly model: string;
  readonly tokenMode: PolicyConfig['token_mode'];
  /** The trainer needs every token: an answer without them fails the rollout. */
  readonly requireTokens: boolean;
  /** Whether the experts that it tells for each token are kept. */
  readonly experts: ExpertMode;
  /** What it is asked to sample with. */
  readonly sampling: Sampling;
  /** When it cannot be asked: the agent's clocks stand still. */
  readonly pause: Pause;
  complete(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    signal: AbortSignal,
  ): Promise<PolicyReply | ContextOverflow>;
  /** Tokens that came so far, and the seconds that they took; null: not known. */
  throughput(): { tokens: number; seconds: number } | null;
  /** The texts of token ids, for messages; null where the endpoint does not tell. */
  detokenize(ids: readonly number[], signal: AbortSignal): Promise<string[] | null>;
}

export type AgentTask = { instance: Instance; config: AgentConfig; workdir: string };

export type AgentDeps = {
  shell: Shell;
  policy: Policy;
  signal: AbortSignal;
  /** Called before each turn: it may abort the signal, as when the rollout began with weights that are too old. */
  beforeTurn?: (trajectory: Trajectory) => void;
  /** Called after every turn, so that progress is seen and a crash keeps the trace. */
  onTurn?: (trajectory: Trajectory) => void;
};

export type AgentEnd = {
  /** Null only when the sandbox was killed by its own limit: then the agent did not stop, it was stopped. */
  exit_status: ExitStatus | null;
  /** What was printed after the sentinel, or the argument of submit_solution; null when there was none. */
  submission: string | null;
  trajectory: Trajectory;
  /** The last answer was cut by the token limit. */
  cut_by_token_limit: boolean;
  /** The agent's sandbox died by its own limit. */
  sandbox_killed: boolean;
  model_seconds: number;
  command_seconds: number;
};
