/** A worker whose rollouts are timers: queue, journal, placement, heartbeat, keeper and commit are the real ones. For tests and measurements of many nodes. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createWorkerMetrics,
  type Farm,
  openFarm,
  type RolloutJob,
  silentLog,
  type WorkerConfig,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import { ActiveAttempts } from './active.ts';
import { openEndpoints } from './agent/policy/endpoints.ts';
import { watchPolicies } from './agent/policy/watch.ts';
import { createHandDrain } from './drain.ts';
import { createQuiet } from './evaluation/quiet.ts';
import { factsOf, type Judged } from './facts.ts';
import { beat } from './heartbeat.ts';
import { identify } from './identity.ts';
import { allDuties } from './keeper/duties.ts';
import { keep } from './keeper/keeper.ts';
import type { Node } from './node.ts';
import { createPlacing } from './placing.ts';
import { startPull } from './pull.ts';
import { createLeaving } from './sandbox/leaving.ts';
import type { Runtime } from './sandbox/runtime.ts';
import { createSick } from './sick.ts';
import type { Task } from './task.ts';
import type { Threads } from './threads/pool.ts';

export type Simulation = {
  slots: number;
  /** Called for an image that this worker does not have; resolves when it does. */
  pull(image: string): Promise<void>;
  /** How long this rollout takes. */
  milliseconds(job: RolloutJob): number;
  /** Called as each rollout begins to run, and with -1 as it ends. */
  running?(change: 1 | -1): void;
};

export type SimulatedWorker = {
  readonly farm: Farm;
  active(): number;
  /** As SIGKILL does: from now on it says nothing to anybody. */
  kill(): Promise<void>;
  drain(): Promise<void>;
};

export async function simulateWorker(
  config: WorkerConfig,
  { slots, pull, milliseconds, running }: Simulation,
): Promise<SimulatedWorker> {
  const log = silentLog() as unknown as Logger;
  const farm = await openFarm(config, 'worker');
  const identity = identify(farm.id, config.worker_id, config.node);
  const endpoints = openEndpoints();
  const metrics = createWorkerMetrics();
  const here = new Map<string, Promise<void>>();
  const ensure = async (image: string): Promise<boolean> => {
    const known = here.get(image);
    const ready = known ?? pull(image);
    here.set(image, ready);
    await ready;
    return known === undefined;
  };
  const rollout = async (task: Task): Promise<Judged> => {
    running?.(1);
    try {
      await task.clock.time('image', () => ensure(task.instance.image));
      await sleep(milliseconds(task.job), undefined, { signal: task.signal });
    } finally {
      running?.(-1);
    }
    const facts = factsOf(task, { end: null, patch: '', tooLarge: false, agentSeconds: 0 });
    return { facts, reward: 0, row: 'simulated', resolved: false };
  };
  const node: Node = {
    identity,
    owner: { farm: farm.id, worker: identity.worker, pid: identity.pid, pid_started: identity.pid_started },
    farm,
    runtime: { name: 'fake' } as Runtime,
    rollout,
    placing:
      config.placement === 'off' ? null : createPlacing(farm, identity, config.locality_wait_seconds * 1000),
    threads: { run: () => Promise.reject(new Error('nothing to grade')) } as unknown as Threads,
    quiet: createQuiet(),
    leaving: createLeaving(),
    cleanImages: new Set(),
    active: new ActiveAttempts(),
    sick: createSick(log),
    endpoints,
    policies: watchPolicies({ farm, worker: identity.worker, endpoints, log }),
    metrics,
    hostRewards: false,
    liveTurns: 0,
    log,
  };
  const until = new AbortController();
  const stop = new AbortController();
  const byHand = createHandDrain(node.active, 1000, log);
  const calm = {
    reason: async () => null,
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
  const keeping = keep(identity.worker, allDuties(), { farm, log, metrics }, stop.signal);
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
