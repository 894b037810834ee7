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
import type { AgentEnd } from '../agent/agent.ts';
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
  resumable: ResumableWork | null;
  clock: StageClock;
  /** For those who watch. */
  live: LiveTrace;
  log: Logger;
  signal: AbortSignal;
  /** Filled while the attempt goes on, so that a failure keeps what was learnt. */
  trace: Trace;
};

/** What the agent left. */
export type AgentWork = {
  end: AgentEnd | null;
  patch: string | null;
  tooLarge: boolean;
  agentSeconds: number;
  /** As in RewardFacts. */
  policyPace: number | null;
};

/** What the tables say of the facts. */
export type Judged = { facts: RewardFacts; reward: number | null; row: string; resolved: boolean | null };

/** What an earlier attempt's agent did, whose evaluation was lost. */
export type ResumableWork = NonNullable<ArtifactContent['kept']> & { trajectory: Trajectory; patch: string };

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
