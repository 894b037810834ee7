/** What the page gets from a farm or from a result file. Types only: the page's own code imports them too. */
import type {
  JournalEntry,
  LiveRollout,
  LiveTurn,
  Message,
  Report,
  Result,
  Trajectory,
  Turn,
  WorkerRecord,
} from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { RunStatus } from '../view/status.ts';

export type PageOverview = {
  kind: 'farm' | 'file';
  /** Address of the Redis, or path of the file. */
  name: string;
  runs: RunStatus[];
  /** Jobs by state; null of a file. */
  queue: Record<string, number> | null;
  workers: WorkerRecord[];
};

/** A rollout in lists and grids: what the page filters and sorts by, and no more; thousands of them are sent at once. */
export type PageRollout = {
  /** Position in the run's `instances`. */
  instance: number;
  index: number;
  outcome: Result['outcome'];
  resolved: boolean | null;
  reward: number | null;
  exit: Result['exit_status'];
  /** Class of the failure. */
  failure: string | null;
  /** Its message, cut. */
  reason: string | null;
  forged: boolean;
  turns: number;
  tokens: number;
  seconds: number;
  attempt: number;
  node: string;
  version: string | null;
  finished_at: number;
};

export type PageRun = {
  run: RunStatus;
  /** Ids, in the order in which they are shown. */
  instances: string[];
  /** Those that were committed since `after`. */
  rollouts: PageRollout[];
  running: LiveRollout[];
  /** Read on from here. */
  cursor: string;
};

/** A turn without its token ids, which have a route of their own. */
export type PageTurn = Omit<Turn, 'tokens'> & { token_count: number | null };

export type PageTrajectory = Omit<Trajectory, 'turns' | 'messages'> & {
  messages: Message[];
  turns: PageTurn[];
};

export type PageDetail = {
  rollout_id: string;
  instance_id: string;
  /** Null while it waits or runs. */
  result: Omit<Result | OutputLine, 'patch' | 'report'> | null;
  /** Where it is, while it runs. */
  live: LiveRollout | null;
  /** Indices of the group. */
  siblings: number[];
  attempts: JournalEntry[];
  problem: string | null;
  /** The golden patch; null without the dataset. */
  gold: string | null;
  trajectory: PageTrajectory | null;
  patch: string | null;
  report: Report | null;
  failure_detail: string | null;
  /** Bytes of the test log, which has a route of its own; null: there is none. */
  log_size: number | null;
  /** Why there is a result but no trajectory. */
  missing: string | null;
};

export type PageTokens = {
  prefix_length: number;
  prompt: number[];
  generation: number[];
  log_probs: number[];
};

export type PageLive = { turns: LiveTurn[]; cursor: string; live: LiveRollout | null; finished: boolean };

/** What the page shows. Throws UsageError and SwefarmError for what is not there. */
export interface PageSource {
  overview(): Promise<PageOverview>;
  run(runId: string, after: string): Promise<PageRun>;
  rollout(rolloutId: string): Promise<PageDetail>;
  /** Token ids of one turn (from 0); null when it has none. */
  tokens(rolloutId: string, turn: number): Promise<PageTokens | null>;
  log(rolloutId: string): Promise<string | null>;
  live(rolloutId: string, after: string): Promise<PageLive>;
}
