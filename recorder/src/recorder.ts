/**
 * The interface between the recording endpoint of a rollout and the worker that runs the rollout. `openRecorder(options)` returns a
 * {@link Recorder}, and `createRecorderServer(recorder)` the HTTP server that passes it the requests of one sandbox.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExpertMode, PolicyReply } from '@swefarm/policy';
import type {
  AgentCard,
  ExitStatus,
  InstalledAgent,
  Message,
  Price,
  ToolDefinition,
  Trajectory,
  Turn,
} from '@swefarm/shared';

/**
 * What a policy must know to continue after one answer, beside the token ids and the messages. It never changes. The recorder keeps one for
 * each answer, so it has no token ids.
 */
export type PolicyPoint = object;

/** The answer that a new line continues, with its ids as the policy returned them; null if there are none. */
export type Continued = {
  point: PolicyPoint;
  prompt_token_ids: Int32Array | null;
  generation_token_ids: Int32Array | null;
  generation_log_probs: Float32Array | null;
};

/** Other lines may continue from the point `after`. `text` is the sampled text. If the server parsed the answer, `text` is absent. */
export type RecordedReply = PolicyReply & { after: PolicyPoint; text?: string };

export type PolicyRequest = {
  /**
   * All messages of the line. Callers only append: the answer to n messages is message n of later requests. Its calls have the ids and names
   * of the reply; if they could not be read, the answer may be a text.
   */
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  /** Maximum tokens of the answer, in addition to the limits of the run; null: no further limit. */
  maxTokens: number | null;
  /** Number of the answer in the rollout, from 1. The seed and the ids of calls are derived from it. */
  seedTurn: number;
  signal: AbortSignal;
};

/** The prompt leaves no room for an answer; `of`: the limit, absent: of the server. */
export type NoRoom = { context_overflow: true; message: string; of?: Trajectory['limit'] };

/** One line of requests to the policy, one request at a time. Several lines may have requests at the same time. */
export interface PolicyLine {
  /** Asks for the next answer of the line. Throws RolloutFailure `policy_*`, or the signal's reason when aborted. */
  complete(request: PolicyRequest): Promise<RecordedReply | NoRoom>;
}

/** Reason for which the endpoint refuses all further requests. */
export type RolloutOver = Exclude<ExitStatus, 'submitted' | 'agent_error'> | 'ended';

export type RecorderOptions = {
  /**
   * Opens a line that begins with a whole prompt, or continues after an earlier answer of any line: the first messages of its requests are
   * those of that answer's request, and the answer.
   */
  openLine(after?: Continued): PolicyLine;
  /** Returns the number of prompt tokens of a request; absent: the recorder estimates it from the length of the texts. */
  countTokens?(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    signal: AbortSignal,
  ): Promise<number>;
  policy: {
    requireTokens: boolean;
    experts: ExpertMode;
    tokenMode: 'echo' | 'token-in' | 'text';
  };
  card: AgentCard;
  limits: {
    turns: number;
    answerTokens: number | null;
    /** US dollars, and the price by which they are counted. */
    cost: { most: number; price: Price } | null;
    malformedInARow: number;
    /** Most prompts that are rendered whole. */
    wholePrompts: number;
  };
  trainLines: 'all' | 'main' | 'abandoned';
  /** Text that the agent's own client sends as its key. */
  key: string;
  /** The trajectory before its first turn: format, token mode, model, endpoint, sampling. */
  trajectory: Trajectory;
  /** Called before each request to the policy. It may abort the signal. */
  beforeTurn?: (trajectory: Trajectory) => void;
  onTurn?: (trajectory: Trajectory, turn: Turn) => void;
  /** Aborted: requests to the policy end, and their agents' requests get the refusal. */
  signal: AbortSignal;
  /** Returns the seconds in which the policy was paused, which do not count as model seconds; absent: 0. */
  pausedSeconds?(): number;
  /** Milliseconds of silence before the head of a stream, and between signs of life; absent: 2,000 and 15,000. */
  silenceMs?: { head: number; alive: number };
};

export interface Recorder extends AsyncDisposable {
  /** Handles a request of the agent. Never throws. The server is made by `createRecorderServer`. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Refuses all further requests, and answers those in flight with the refusal. */
  close(why: RolloutOver): void;
  /** Resolves when a limit is reached, and rejects with the failure of the policy or of the recording. */
  readonly over: Promise<RolloutOver>;
  /** Resolves when no request to the policy is in flight. */
  idle(): Promise<void>;
  /** Returns what is recorded so far. */
  trajectory(): Trajectory;
  /**
   * Checks the recording of an agent that has ended.
   *
   * @throws RolloutFailure `policy_tokens` if tokens are required and an answer is in no line, or no token is trained on
   */
  requireTrained(): void;
  facts(): Pick<
    InstalledAgent,
    | 'lines'
    | 'masked'
    | 'requests'
    | 'whole'
    | 'repeated'
    | 'repaired'
    | 'refused'
    | 'unknown_paths'
    | 'dropped'
  >;
  /** Number of answers of a wrong form, without answers that the token limit cut. */
  malformedAnswers(): number;
  /** Seconds in which at least one request waited for the policy. */
  modelSeconds(): number;
}
