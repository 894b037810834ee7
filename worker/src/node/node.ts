/** One worker process: the services that its attempts, loops and puller use. */
import { createRemovals } from '@swefarm/sandbox';
import { decide } from '@swefarm/shared';
import { type Admission, createAdmission } from '../admission/admission.ts';
import { Endpoints } from '../agent/policy/endpoints.ts';
import { watchPolicies } from '../agent/policy/watch.ts';
import { EvaluationLock } from '../evaluation/evaluationlock.ts';
import { ActiveAttempts } from '../rollout/active.ts';
import type { AttemptServices, FailedRollout } from '../rollout/context.ts';
import { createPolicyPaces } from '../rollout/policypaces.ts';
import { createBreaker, type NodeBreaker, trySandbox } from './breaker.ts';
import { nodeMemory } from './capacity.ts';
import { type Identity, identify } from './reaper.ts';
import { createRouter, type Router } from './routing.ts';

export type Node = AttemptServices & {
  identity: Identity;
  active: ActiveAttempts;
  breaker: NodeBreaker;
  admission: Admission;
  /** Null: this worker runs every job that it claims. */
  router: Router | null;
};

/** How a worker runs rollouts, and when it retries them. */
export type Play = Pick<AttemptServices, 'runRollout'> & Partial<Pick<AttemptServices, 'dryRun' | 'decide'>>;

type Given = 'config' | 'farm' | 'runtime' | 'threads' | 'runRollout' | 'metrics' | 'stop' | 'log';

type NodeParts = Pick<AttemptServices, Given> &
  Play & {
    /** Returns whether the node can start sandboxes; absent: the worker starts a trial sandbox. */
    isWell?: (last: FailedRollout | null) => Promise<boolean>;
    policyIntervalMs?: number;
  };

/** The caller must dispose `policies` and `admission`, and wait for `removals` before it closes the runtime. */
export function createNode(parts: NodeParts): Node {
  const { isWell, policyIntervalMs: intervalMs, ...given } = parts;
  const { config, farm, runtime, stop, log } = given;
  const identity = identify(farm.id, config.worker_id, config.node);
  const { worker, pid, pid_started } = identity;
  const owner = { farm: farm.id, worker, pid, pid_started };
  const endpoints = new Endpoints();
  const interval = intervalMs === undefined ? {} : { intervalMs };
  const isHealthy = isWell ?? ((last) => trySandbox({ runtime, owner }, last, stop));
  const routes = config.placement === 'auto' && runtime.placesByImage;
  return {
    ...{ dryRun: false, decide, ...given },
    identity,
    owner,
    router: routes ? createRouter(farm, identity, config.locality_wait_seconds * 1000) : null,
    evaluationLock: new EvaluationLock(),
    noted: new Map(),
    removals: createRemovals(),
    cleanPlans: new Set(),
    policyPaces: createPolicyPaces(),
    active: new ActiveAttempts(),
    breaker: createBreaker(log, isHealthy),
    endpoints,
    admission: createAdmission(
      { farm, worker, log, pollMs: config.admission_poll_seconds * 1000 },
      intervalMs,
    ),
    policies: watchPolicies({ farm, worker, endpoints, log, ...interval }),
    nodeMemoryBytes: nodeMemory(config),
  };
}
