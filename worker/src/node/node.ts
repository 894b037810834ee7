/** One worker process: the services that its attempts, loops and puller use. */

import type { Runtime } from '@swefarm/sandbox';
import { createRemovals } from '@swefarm/sandbox';
import type { Farm, WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import { Endpoints } from '../agent/policy/endpoints.ts';
import { watchPolicies } from '../agent/policy/watch.ts';
import { EvaluationLock } from '../evaluation/evaluationlock.ts';
import type { WorkerMetrics } from '../metrics/workermetrics.ts';
import { ActiveAttempts } from '../rollout/active.ts';
import type { AttemptServices, FailedRollout } from '../rollout/context.ts';
import { createPolicyPaces } from '../rollout/policypaces.ts';
import type { Threads } from '../threads/pool.ts';
import { NodeBreaker } from './breaker.ts';
import { nodeMemory } from './capacity.ts';
import { type Identity, identify } from './identity.ts';
import { createRouter, placesHere, type Router } from './routing.ts';
import { trySandbox } from './trysandbox.ts';

export type Node = AttemptServices & {
  identity: Identity;
  farm: Farm;
  active: ActiveAttempts;
  breaker: NodeBreaker;
  /** Null: this worker runs every job that it claims. */
  router: Router | null;
};

type NodeParts = {
  config: WorkerConfig;
  farm: Farm;
  runtime: Runtime;
  threads: Threads;
  runRollout: AttemptServices['runRollout'];
  metrics: WorkerMetrics;
  stop: AbortSignal;
  log: Logger;
  /** Returns whether a sandbox can start on this node; absent: starts a trial sandbox. */
  isWell?: (last: FailedRollout | null) => Promise<boolean>;
  policyIntervalMs?: number;
};

/** The caller must dispose `policies`, and wait for `removals` before it closes the runtime. */
export function createNode(parts: NodeParts): Node {
  const { config, farm, runtime, threads, runRollout, metrics, stop, log } = parts;
  const identity = identify(farm.id, config.worker_id, config.node);
  const { worker, pid, pid_started } = identity;
  const owner = { farm: farm.id, worker, pid, pid_started };
  const endpoints = new Endpoints();
  const interval = parts.policyIntervalMs === undefined ? {} : { intervalMs: parts.policyIntervalMs };
  const isWell = parts.isWell ?? ((last) => trySandbox({ runtime, owner }, last, stop));
  return {
    identity,
    owner,
    farm,
    runtime,
    runRollout,
    router: placesHere(config, runtime)
      ? createRouter(farm, identity, config.locality_wait_seconds * 1000)
      : null,
    threads,
    evaluationLock: new EvaluationLock(),
    noted: new Map(),
    removals: createRemovals(),
    cleanPlans: new Set(),
    policyPaces: createPolicyPaces(),
    active: new ActiveAttempts(),
    breaker: new NodeBreaker(log, isWell),
    stop,
    endpoints,
    policies: watchPolicies({ farm, worker, endpoints, log, ...interval }),
    policyPauseLimitMs: config.policy_pause_limit_seconds * 1000,
    metrics,
    ceilings: config,
    nodeMemoryBytes: nodeMemory(config),
    parserImage: config.parser_image,
    hostRewards: config.host_rewards,
    liveTurns: config.live_turns,
    log,
  };
}
