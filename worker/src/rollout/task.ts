/** The input of one attempt, and the trace from which its result is made. */
import type { RewardDecision } from '@swefarm/grading';
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
  claim: string;
  run: RunRecord;
  instance: Instance;
  /** Patch given with the job; null unless the agent is `patch`. */
  patch: string | null;
  apiKey: PolicyKey | null;
  resumable: ResumableWork | null;
  clock: StageClock;
  live: LiveTrace;
  log: Logger;
  signal: AbortSignal;
  /** Filled while the attempt runs, so that the result of a failure has everything that is known so far. */
  trace: Trace;
};

export type AgentWork = {
  end: AgentEnd | null;
  patch: string | null;
  tooLarge: boolean;
  agentSeconds: number;
  /** Pace of the policy, as in RewardFacts. */
  policyPace: number | null;
};

/** Verdict of the reward table on the facts. */
export type Judged = { facts: RewardFacts; row: string } & Pick<
  RewardDecision,
  'reward' | 'resolved' | 'reward_components'
>;

/** Work of an earlier attempt's agent that only needs an evaluation. */
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
