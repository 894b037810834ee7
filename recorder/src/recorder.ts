/** The interface between the recording endpoint of a rollout and the worker that runs the rollout. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ModelReply } from '@swefarm/policy';
import type { AgentCard, InstalledAgent, Message, ToolDefinition, Trajectory, Turn } from '@swefarm/shared';

/** The reply of a policy with what the worker knows of it, as in a turn. */
export type RecordedReply = ModelReply & {
  seconds: number;
  endpoint: string;
} & Pick<Turn, 'policy_version' | 'asked' | 'spans'>;

/** One line of requests to the policy. Each has its own state, so lines may be asked side by side. */
export interface PolicyLine {
  /**
   * Sends the next request of the line. `messages`: all messages of the line, only ever appended to.
   * `seedTurn`: number of the answer in the rollout, from 1, from which its seed is derived.
   *
   * @throws RolloutFailure `policy_*`, the signal's reason when aborted
   */
  complete(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    signal: AbortSignal,
    seedTurn: number,
  ): Promise<RecordedReply | { context_overflow: true; message: string; of?: Trajectory['limit'] }>;
  /** Opens a line that continues this one after its last answer. Only valid until the next request of this line begins. */
  fork(): PolicyLine;
}

/** Why the endpoint refuses all further requests. */
export type RolloutOver = 'turn_limit' | 'context_limit' | 'time_limit' | 'format_limit' | 'ended';

export type RecorderOptions = {
  openLine(): PolicyLine;
  policy: {
    requireTokens: boolean;
    experts: 'require' | 'store' | 'drop';
    tokenMode: 'echo' | 'token-in' | 'text';
  };
  card: AgentCard;
  limits: {
    turns: number;
    answerTokens: number | null;
    /** US dollars, and the price by which they are counted. */
    cost: { most: number; price: { prompt: number; completion: number } } | null;
    malformedInARow: number;
  };
  trainLines: 'all' | 'main' | 'abandoned';
  /** Text that the agent's own client sends as its key. */
  key: string;
  /** The trajectory before its first turn: format, token mode, model, endpoint, sampling. */
  trajectory: Trajectory;
  beforeTurn?: (trajectory: Trajectory) => void;
  onTurn?: (trajectory: Trajectory, turn: Turn) => void;
  signal: AbortSignal;
};

export interface Recorder extends AsyncDisposable {
  /** Handles a request of the agent. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Refuses all further requests, and answers those in flight with the refusal. */
  close(why: RolloutOver): void;
  /** Resolves when a limit is reached, and rejects with the failure of the policy or of the recording. */
  readonly over: Promise<RolloutOver>;
  /** Resolves when no request is in flight. */
  idle(): Promise<void>;
  /** Returns what is recorded so far. */
  trajectory(): Trajectory;
  facts(): Pick<
    InstalledAgent,
    'lines' | 'masked' | 'requests' | 'whole' | 'repeated' | 'repaired' | 'refused' | 'unknown_paths'
  >;
  /** Seconds in which at least one request waited for the policy. */
  modelSeconds(): number;
}
