/** What one worker process holds for all its rollouts. */
import type { Ceilings, Farm, WorkerMetrics } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Endpoints } from '../agent/policy/endpoints.ts';
import type { PolicyWatch } from '../agent/policy/watch.ts';
import type { EvaluationLock } from '../evaluation/evaluationlock.ts';
import type { ActiveAttempts } from '../rollout/active.ts';
import type { runRollout } from '../rollout/rollout.ts';
import type { CleanImages } from '../sandbox/history.ts';
import type { Removals } from '../sandbox/removals.ts';
import type { Owner, Runtime } from '../sandbox/runtime.ts';
import type { Threads } from '../threads/pool.ts';
import type { NodeBreaker } from './breaker.ts';
import type { Identity } from './identity.ts';
import type { Paces } from './paces.ts';
import type { Router } from './routing.ts';

export type Node = {
  identity: Identity;
  /** The marks of this worker on everything it starts; rollout and attempt are added per container. */
  owner: Omit<Owner, 'rollout_id' | 'attempt'>;
  farm: Farm;
  runtime: Runtime;
  /** How a rollout is run; simulations have their own. */
  rollout: typeof runRollout;
  /** Null: this worker runs what it claims. */
  router: Router | null;
  active: ActiveAttempts;
  /** Policy endpoints of this worker's rollouts, and what trainers say of the policies. */
  endpoints: Endpoints;
  policies: PolicyWatch;
  /** How fast the rollouts here hear their policies. */
  paces: Paces;
  /** How long a policy may not serve before nobody here waits for it. */
  policyPauseLimitMs: number;
  threads: Threads;
  evaluationLock: EvaluationLock;
  removals: Removals;
  cleanImages: CleanImages;
  breaker: NodeBreaker;
  /** Aborts when this worker is told to end. */
  stop: AbortSignal;
  metrics: WorkerMetrics;
  /** What no run may pass here. */
  ceilings: Ceilings;
  /** This worker permits rewards from the `host` dry run, when the run asks for them too. */
  hostRewards: boolean;
  /** Latest turns of each running rollout that can be watched; 0: none. */
  liveTurns: number;
  log: Logger;
};
