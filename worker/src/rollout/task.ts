/** What one attempt is given, and what it leaves behind for its result, however it ends. */
import type {
  ArtifactContent,
  Instance,
  PolicyKey,
  Report,
  RewardFacts,
  RolloutJob,
  RunRecord,
  Trajectory,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import type { LiveTrace } from './live.ts';
import type { StageClock } from './stages.ts';

export type Task = {
  job: RolloutJob;
  attempt: number;
  /** The nonce of the attempt's claim. */
  claim: string;
  run: RunRecord;
  instance: Instance;
  /** The patch given with the job; null unless the agent is `patch`. */
  patch: string | null;
  apiKey: PolicyKey | null;
  /** Work of an earlier attempt that only has to be evaluated. */
  kept: KeptWork | null;
  clock: StageClock;
  /** For those who watch. */
  live: LiveTrace;
  log: Logger;
  signal: AbortSignal;
  /** Filled while the attempt goes on, so that a failure keeps what was learnt. */
  trace: Trace;
};

/** What an earlier attempt's agent did, whose evaluation was lost. */
export type KeptWork = NonNullable<ArtifactContent['kept']> & { trajectory: Trajectory; patch: string };

export type Trace = {
  trajectory: Trajectory | null;
  patch: string | null;
  report: Report | null;
  testLog: Buffer | null;
  evalScript: string | null;
  facts: RewardFacts | null;
};

export const emptyTrace = (): Trace => ({
  trajectory: null,
  patch: null,
  report: null,
  testLog: null,
  evalScript: null,
  facts: null,
});
