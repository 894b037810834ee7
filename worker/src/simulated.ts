/** A worker whose rollouts are timers: queue, journal, placement, heartbeat, keeper and commit are the real ones. For tests and measurements of many nodes. */
import {
  createWorkerMetrics,
  type Farm,
  openFarm,
  type RolloutJob,
  silentLog,
  type Trajectory,
  type WorkerConfig,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import { openEndpoints } from './agent/policy/endpoints.ts';
import { watchPolicies } from './agent/policy/watch.ts';
import { createEvaluationLock } from './evaluation/evaluationlock.ts';
import { allDuties } from './maintenance/duties.ts';
import { runMaintenance } from './maintenance/maintenance.ts';
import { createNodeBreaker } from './node/breaker.ts';
import { createHandDrain } from './node/drain.ts';
import { beat } from './node/heartbeat.ts';
import { identify } from './node/identity.ts';
import type { Node } from './node/node.ts';
import { openPaces } from './node/paces.ts';
import { createRouter } from './node/routing.ts';
import { startPull } from './pull.ts';
import { ActiveAttempts } from './rollout/active.ts';
import { factsOf, type Judged } from './rollout/facts.ts';
import type { Task } from './rollout/task.ts';
import { createRemovals } from './sandbox/removals.ts';
import type { Runtime } from './sandbox/runtime.ts';
import type { Threads } from './threads/pool.ts';

export type Simulation = {
  slots: number;
  /** Called for an image that this worker does not have; resolves when it does. */
  pull(image: string): Promise<void>;
  /** Takes as long as the rollout does, and throws when the signal aborts. `turns`: tells those who watch. */
  work(job: RolloutJob, given: { signal: AbortSignal; turns(said: Trajectory): void }): Promise<void>;
};

export type SimulatedWorker = {
  readonly farm: Farm;
  active(): number;
  /** As SIGKILL does: from now on it says nothing to anybody. */
  kill(): Promise<void>;
  drain(): Promise<void>;
};

/** Of the process, however many workers it simulates: each set watches event loop and garbage collection anew. */
const metrics = createWorkerMetrics();

export async function simulateWorker(
  config: WorkerConfig,
  { slots, pull, work }: Simulation,
): Promise<SimulatedWorker> {
  const log = silentLog() as unknown as Logger;
  const farm = await openFarm(config, 'worker');
  const identity = identify(farm.id, config.worker_id, config.node);
  const endpoints = openEndpoints();
  const here = new Map<string, Promise<void>>();
  const ensure = async (image: string): Promise<boolean> => {
    const known = here.get(image);
    const ready = known ?? pull(image);
    here.set(image, ready);
    await ready;
    return known === undefined;
  };
  const rollout = async (task: Task): Promise<Judged> => {
    await task.clock.time('image', () => ensure(task.instance.image));
    await task.clock.time('agent', () => bound(task));
    const facts = factsOf(
      task,
      { end: null, patch: '', tooLarge: false, agentSeconds: 0, policyPace: null },
      'swebench-4.1.0',
    );
    return { facts, reward: 0, row: 'simulated', resolved: false };
  };
  /** Bound to an endpoint as a rollout with a model is, whom nobody asks anything. */
  const bound = async ({ job, run, signal, live }: Task): Promise<void> => {
    const given = { signal, turns: (said: Trajectory) => live.turns(said) };
    if (!run.policy) return await work(job, given);
    using _followed = await node.policies.follow(run.policy);
    using _held = endpoints.bind(run.policy.urls, job.rollout_id);
    await work(job, given);
  };
  const stop = new AbortController();
  const node: Node = {
    identity,
    owner: { farm: farm.id, worker: identity.worker, pid: identity.pid, pid_started: identity.pid_started },
    farm,
    runtime: { name: 'fake' } as Runtime,
    rollout,
    router:
      config.placement === 'off' ? null : createRouter(farm, identity, config.locality_wait_seconds * 1000),
    threads: { run: () => Promise.reject(new Error('nothing to grade')) } as unknown as Threads,
    evaluationLock: createEvaluationLock(),
    removals: createRemovals(),
    cleanImages: new Set(),
    paces: openPaces(),
    active: new ActiveAttempts(),
    breaker: createNodeBreaker(log, () => Promise.resolve(true)),
    stop: stop.signal,
    endpoints,
    policies: watchPolicies({ farm, worker: identity.worker, endpoints, log }),
    policyPauseLimitMs: config.policy_pause_limit_seconds * 1000,
    metrics,
    ceilings: config,
    hostRewards: false,
    liveTurns: config.live_turns,
    log,
  };
  const until = new AbortController();
  const byHand = createHandDrain(node.active, 1000, log);
  const calm = {
    // As the real one asks, with nothing to say of a machine that simulates many.
    reason: async () => {
      await farm.artifacts.usage();
      return null;
    },
    lagSeconds: () => 0,
    disk: () => ({ freeBytes: 0, sizeBytes: 0 }),
  };
  const pulling = startPull(node, slots, config.redis_prefix);
  const heart = beat(
    {
      node,
      slots,
      metricsAddress: null,
      pressure: { ...calm, [Symbol.dispose]: () => undefined },
      byHand,
      stop: stop.signal,
      onPause: (reason) => pulling.setPaused(reason !== null),
      onIdle: () => undefined,
    },
    until.signal,
  );
  const keeping = runMaintenance(identity.worker, allDuties(), { farm, log, metrics }, stop.signal);
  const close = async (): Promise<void> => {
    node.policies[Symbol.dispose]();
    byHand[Symbol.dispose]();
    await farm[Symbol.asyncDispose]();
  };
  return {
    farm,
    active: () => node.active.count,
    async kill() {
      await close();
      stop.abort();
      until.abort();
      node.active.abortAll('superseded');
      // What it still tries fails for want of a connection.
      heart.catch(() => undefined);
      keeping.catch(() => undefined);
      void pulling.drain({ finishMs: 0, handBackMs: 9_000 }).catch(() => undefined);
    },
    async drain() {
      stop.abort();
      await pulling.drain({ finishMs: 1_000, handBackMs: 9_000 });
      until.abort();
      await heart;
      await keeping;
      await close();
    },
  };
}
