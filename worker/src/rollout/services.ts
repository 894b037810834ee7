/** The services of a worker that an attempt may use. */

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

/** Run of a failed rollout, and the image for a trial sandbox. */
export type FailedRollout = { run: string; image: string; instance: string };

type NodeHealth = {
  failed(failure: FailureClass, cause: string, sample: FailedRollout): void;
  succeeded(): void;
};

export type AttemptServices = {
  identity: { worker: string; node: string };
  /** Labels of this worker's containers, without rollout and attempt. */
  owner: Omit<Owner, 'rollout_id' | 'attempt'>;
  farm: Farm;
  runtime: Runtime;
  runRollout: (task: Task, services: AttemptServices) => Promise<Judged>;
  active: Pick<ActiveAttempts, 'abort' | 'claimed' | 'handBack'>;
  breaker: NodeHealth;
  endpoints: Endpoints;
  policies: PolicyWatch;
  policyPaces: PolicyPaces;
  /** How long rollouts on this worker wait for a paused policy, in milliseconds. */
  policyPauseLimitMs: number;
  threads: Threads;
  evaluationLock: EvaluationLock;
  /** Stored evidence of control evaluations → when this worker stored it (ms of a monotonic clock). */
  noted: Map<string, number>;
  removals: Removals;
  cleanPlans: CleanPlans;
  stop: AbortSignal;
  metrics: WorkerMetrics;
  /** Maximum resources that any run may request on this worker. */
  ceilings: Ceilings;
  /** Bytes of memory that the node's sandboxes may use. */
  nodeMemoryBytes: number;
  /** Image in which programs of datasets read outcomes; null: none. */
  parserImage: string | null;
  /** Whether this worker permits rewards for dry runs on `host`; the run must permit them too. */
  hostRewards: boolean;
  /** Maximum number of latest turns of each running rollout that watchers see; 0: none. */
  liveTurns: number;
  log: Logger;
};
