/** What an attempt may use of its worker. Files of this folder take this type, or the few services of it that they need. */

import type { CleanPlans, Owner, Removals, Runtime } from '@swefarm/sandbox';
import type { Ceilings, FailureClass, Farm } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Endpoints } from '../agent/policy/endpoints.ts';
import type { PolicyWatch } from '../agent/policy/watch.ts';
import type { EvaluationLock } from '../evaluation/evaluationlock.ts';
import type { WorkerMetrics } from '../metrics/workermetrics.ts';
import type { Threads } from '../threads/pool.ts';
import type { ActiveAttempts } from './active.ts';
import type { PolicyPaces } from './policypaces.ts';
import type { Judged, Task } from './task.ts';

/** The run of a failed rollout, and the image with which a sandbox is tried. */
export type FailedRollout = { run: string; image: string; instance: string };

/** Learns from attempts whether this node works. */
type NodeHealth = {
  failed(failure: FailureClass, cause: string, sample: FailedRollout): void;
  succeeded(): void;
};

type AttemptFarm = Pick<
  Farm,
  | 'artifacts'
  | 'clock'
  | 'commit'
  | 'controls'
  | 'journal'
  | 'leases'
  | 'live'
  | 'policies'
  | 'registry'
  | 'runs'
  | 'secrets'
  | 'sessions'
>;

export type AttemptServices = {
  identity: { worker: string; node: string };
  /** This worker's marks on everything it starts; rollout and attempt are added per container. */
  owner: Omit<Owner, 'rollout_id' | 'attempt'>;
  farm: AttemptFarm;
  runtime: Runtime;
  /** Runs a rollout; simulations replace it. */
  runRollout: (task: Task, services: AttemptServices) => Promise<Judged>;
  active: Pick<ActiveAttempts, 'abort' | 'claimed' | 'handBack'>;
  breaker: NodeHealth;
  /** Policy endpoints of this worker's rollouts, and the trainers' announcements about the policies. */
  endpoints: Endpoints;
  policies: PolicyWatch;
  policyPaces: PolicyPaces;
  /** How long a policy may be paused before rollouts here stop waiting for it. */
  policyPauseLimitMs: number;
  threads: Threads;
  evaluationLock: EvaluationLock;
  /** What this worker told the farm about the tests of instances → when (ms of a monotonic clock). */
  noted: Map<string, number>;
  removals: Removals;
  cleanPlans: CleanPlans;
  /** Aborts when this worker must end. */
  stop: AbortSignal;
  metrics: WorkerMetrics;
  /** The most that any run may request here. */
  ceilings: Ceilings;
  /** Bytes of memory that the node's sandboxes may use. */
  nodeMemoryBytes: number;
  /** The image in which programs of datasets read outcomes; null: none is configured. */
  parserImage: string | null;
  /** Whether this worker permits rewards from the `host` dry run, when the run requests them too. */
  hostRewards: boolean;
  /** Number of latest turns of each running rollout that watchers see; 0: none. */
  liveTurns: number;
  log: Logger;
};
