/** What an attempt may see of the worker that it runs on. Files of this folder take this, or the few services of it that they need. */
import type { Ceilings, FailureClass, Farm } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Endpoints } from '../agent/policy/endpoints.ts';
import type { PolicyWatch } from '../agent/policy/watch.ts';
import type { EvaluationLock } from '../evaluation/evaluationlock.ts';
import type { WorkerMetrics } from '../metrics/workermetrics.ts';
import type { CleanImages } from '../sandbox/history.ts';
import type { Removals } from '../sandbox/removals.ts';
import type { Owner, Runtime } from '../sandbox/runtime.ts';
import type { Threads } from '../threads/pool.ts';
import type { ActiveAttempts } from './active.ts';
import type { PolicyPaces } from './policypaces.ts';
import type { Judged, Task } from './task.ts';

/** Whose rollout failed; by its image a sandbox is tried. */
export type FailedRollout = { run: string; image: string; instance: string };

/** Learns from the attempts here whether this node works. */
type NodeHealth = {
  failed(failure: FailureClass, cause: string, sample: FailedRollout): void;
  succeeded(): void;
};

type AttemptFarm = Pick<
  Farm,
  | 'artifacts'
  | 'clock'
  | 'commit'
  | 'journal'
  | 'live'
  | 'policies'
  | 'registry'
  | 'runs'
  | 'secrets'
  | 'sessions'
>;

export type AttemptServices = {
  identity: { worker: string; node: string };
  /** The marks of this worker on everything it starts; rollout and attempt are added per container. */
  owner: Omit<Owner, 'rollout_id' | 'attempt'>;
  farm: AttemptFarm;
  runtime: Runtime;
  /** How a rollout is run; simulations have their own way. */
  runRollout: (task: Task, services: AttemptServices) => Promise<Judged>;
  active: Pick<ActiveAttempts, 'abort' | 'claimed' | 'handBack'>;
  breaker: NodeHealth;
  /** Policy endpoints of this worker's rollouts, and what trainers say of the policies. */
  endpoints: Endpoints;
  policies: PolicyWatch;
  policyPaces: PolicyPaces;
  /** How long a policy may not serve before rollouts here stop waiting for it. */
  policyPauseLimitMs: number;
  threads: Threads;
  evaluationLock: EvaluationLock;
  removals: Removals;
  cleanImages: CleanImages;
  /** Aborts when this worker is told to end. */
  stop: AbortSignal;
  metrics: WorkerMetrics;
  /** The most that any run may ask for here. */
  ceilings: Ceilings;
  /** This worker permits rewards from the `host` dry run, when the run asks for them too. */
  hostRewards: boolean;
  /** Latest turns of each running rollout that can be watched; 0: none. */
  liveTurns: number;
  log: Logger;
};
