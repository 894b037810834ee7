/** Data of one attempt from its claim to its end, the services that it may use, and what happens to its job afterwards. */
import type { RewardDecision } from '@swefarm/grading';
import type { CleanPlans, Owner, Removals, Runtime } from '@swefarm/sandbox';
import type {
  AgentOutput,
  ArtifactContent,
  CancelReason,
  CollectedArtifact,
  DryRunMark,
  decide,
  Failure,
  FailureClass,
  Farm,
  InstalledAgent,
  Instance,
  JournalEntry,
  Log,
  PolicyKey,
  Read,
  Report,
  RewardFacts,
  RolloutJob,
  RunRecord,
  Trajectory,
  Variant,
  WorkerConfig,
} from '@swefarm/shared';
import type { Admission, Permit } from '../admission/admission.ts';
import type { AgentEnd } from '../agent/agent.ts';
import type { Endpoints } from '../agent/policy/endpoints.ts';
import type { PolicyWatch } from '../agent/policy/watch.ts';
import type { EvaluationLock } from '../evaluation/evaluationlock.ts';
import type { WorkerMetrics } from '../metrics/workermetrics.ts';
import type { Threads } from '../threads/pool.ts';
import { type ActiveAttempts, abortOf } from './active.ts';
import type { LiveTrace } from './live.ts';
import type { PolicyPaces } from './policypaces.ts';
import type { StageClock } from './stages.ts';
import type { AttemptTurns } from './turnrecord.ts';

/** What the puller does with the job after the attempt. */
export type AfterAttempt =
  | { next: 'done' }
  /**
   * `anywhere`: the next worker that claims the job runs it, whatever the image. `notOurs`: why only another version may run the job;
   * nothing was claimed. `passed`: the claim of another worker's attempt; the next claim does not wait for the end of that attempt.
   * `delayed`: call it after the job is delayed.
   */
  | {
      next: 'later';
      delayMs: number;
      anywhere?: true;
      notOurs?: string;
      passed?: string;
      delayed?: () => Promise<void>;
    }
  /** Another worker may run the job at once. `gone` resolves when nothing of the attempt is left on this node. */
  | { next: 'hand_back'; gone: Promise<void> };

export const DONE: AfterAttempt = { next: 'done' };
/** Returns to the queue a job whose attempt started nothing. */
export const HAND_BACK: AfterAttempt = { next: 'hand_back', gone: Promise.resolve() };

/** Run of a failed rollout, and the image for a trial sandbox. */
export type FailedRollout = { run: string; image: string; instance: string };

/** The services of a worker that an attempt may use. */
export type AttemptServices = {
  config: WorkerConfig;
  identity: { worker: string; node: string };
  /** Labels of this worker's containers, without rollout and attempt. */
  owner: Omit<Owner, 'rollout_id' | 'attempt'>;
  farm: Farm;
  runtime: Runtime;
  runRollout: (task: Task) => Promise<Judged>;
  /** Whether the worker runs only rollouts of dry runs. Otherwise it runs none of them. */
  dryRun: boolean;
  /** Decides from the journal whether a rollout gets another attempt. */
  decide: typeof decide;
  active: Pick<ActiveAttempts, 'abort' | 'claimed'>;
  breaker: {
    failed(failure: FailureClass, cause: string, sample: FailedRollout): void;
    succeeded(): void;
  };
  endpoints: Endpoints;
  policies: PolicyWatch;
  admission: Pick<Admission, 'enter'>;
  policyPaces: PolicyPaces;
  threads: Threads;
  evaluationLock: EvaluationLock;
  /** Stored evidence of control evaluations → when this worker stored it (ms of a monotonic clock). */
  noted: Map<string, number>;
  removals: Removals;
  cleanPlans: CleanPlans;
  stop: AbortSignal;
  metrics: WorkerMetrics;
  /** Bytes of memory that the node's sandboxes may use. */
  nodeMemoryBytes: number;
  log: Log;
};

export type ClaimedRollout = {
  job: RolloutJob;
  attempt: number;
  claim: string;
  previous: JournalEntry[];
  /** Why the rollout is cancelled; null: the rollout is not cancelled. */
  cancelled: CancelReason | null;
  run: RunRecord;
  instance: Read<Instance>;
  /** Null: the run has no policy or no admission. */
  permit: Permit | null;
};

export type AttemptContext = ClaimedRollout & {
  services: AttemptServices;
  clock: StageClock;
  live: LiveTrace;
  log: Log;
  /** Filled while the attempt runs, so that the result of a failure has everything that is known so far. */
  trace: Trace;
  turns: AttemptTurns;
  signal: AbortSignal;
};

export type Task = Omit<AttemptContext, 'instance'> & {
  instance: Instance;
  /** Patch given with the job; null unless the agent is `patch`. */
  patch: string | null;
  apiKey: PolicyKey | null;
  resumable: ResumableWork | null;
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
  'reward' | 'resolved' | 'reward_components' | 'reward_parts'
>;

export type Conclusion =
  | { outcome: 'judged'; judged: Judged }
  | { outcome: 'failed'; failure: Failure }
  | { outcome: 'cancelled'; cancelReason: CancelReason };

export const failureIn = (conclusion: Conclusion): Failure | null =>
  conclusion.outcome === 'failed' ? conclusion.failure : null;

/** Work of an earlier attempt's agent that only needs an evaluation. */
export type ResumableWork = NonNullable<ArtifactContent['kept']> & {
  trajectory: Trajectory;
  patch: string;
  outputs: AgentOutput[] | null;
  collected: CollectedArtifact[] | null;
};

export class Trace {
  trajectory: Trajectory | null = null;
  patch: string | null = null;
  report: Report | null = null;
  testLog: Buffer | null = null;
  evalScript: string | null = null;
  facts: RewardFacts | null = null;
  /** Prompt set and toolset of the rollout; null: the run has none. */
  variant: Variant | null = null;
  /** Present only in a dry run. */
  dryRun: DryRunMark | null = null;
  /** Only for agents that come as programs. */
  agent: InstalledAgent | null = null;
  outputs: AgentOutput[] | null = null;
  /** Artifacts of a Harbor task; null: none were taken. */
  collected: readonly CollectedArtifact[] | null = null;
  /** Rollout whose report this attempt took. */
  gradedBy: string | null = null;
  /** Patch whose verdict is stored with the result, and the lease on its evaluation while others wait for it. */
  lead: { key: string; lease: AsyncDisposable | null } | null = null;
}

/** Returns whether there is nothing to store as an artifact. */
export const isEmpty = ({ trajectory, patch, report }: Trace): boolean =>
  !trajectory && patch === null && !report;

/** Handler for `catch` that ignores the error that ended an attempt from outside, and rethrows all others. */
export const ignoreIfEnded =
  ({ signal }: AttemptContext) =>
  (error: unknown): void => {
    if (error !== abortOf(signal)) throw error;
  };
