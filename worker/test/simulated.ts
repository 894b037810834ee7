/**
 * A worker with simulated rollouts, for tests and measurements of many nodes. Queue, journal, placement, heartbeat, maintenance and commit
 * are real.
 */

import type { Runtime } from '@swefarm/sandbox';
import {
  openFarm,
  RolloutFailure,
  type RolloutJob,
  silentLog,
  type Trajectory,
  type WorkerConfig,
} from '@swefarm/shared';
import { assembleWorker } from '../src/assemble.ts';
import { createWorkerMetrics } from '../src/metrics/workermetrics.ts';
import { createNode, type Node } from '../src/node/node.ts';
import type { Pressure } from '../src/node/pressure.ts';
import type { AttemptServices, Judged, Task } from '../src/rollout/context.ts';
import { factsOf } from '../src/rollout/facts.ts';
import type { Threads } from '../src/threads/pool.ts';

export { nextState } from '../src/admission/controller.ts';

type Simulation = {
  slots: number;
  /** Called for an image that this worker does not have; resolves when the worker has the image. */
  pull?(image: string): Promise<void>;
  /** Takes as long as the simulated rollout, and throws when the signal aborts. `turns` publishes the turns to watchers. */
  work?(job: RolloutJob, given: { signal: AbortSignal; turns(trajectory: Trajectory): void }): Promise<void>;
};

export type SimulatedWorker = Awaited<ReturnType<typeof simulateWorker>>;

/** One set per process, because each set observes the event loop and garbage collection again. */
const metrics = createWorkerMetrics();

export async function simulateWorker(config: WorkerConfig, simulation: Simulation) {
  const farm = await openFarm(config, 'worker');
  const stop = new AbortController();
  const node = createNode({
    config: { ...config, drain_grace_seconds: 1, exit_when_idle_seconds: 0 },
    ...{ farm, runtime: emptyRuntime, threads: noThreads, runRollout: simulatedRollout(simulation) },
    ...{ metrics, stop: stop.signal, log: silentLog(), isWell: async () => true },
  });
  const { slots } = simulation;
  const worker = assembleWorker({ node, slots, pressure: noPressure(node), metricsAddress: null });
  const close = async (): Promise<void> => {
    node.policies[Symbol.dispose]();
    node.admission[Symbol.dispose]();
    await farm[Symbol.asyncDispose]();
  };
  return {
    farm,
    active: () => node.active.count,
    /** Acts like SIGKILL: afterwards the worker writes nothing. */
    async kill(): Promise<void> {
      await close();
      stop.abort();
      worker.abandon();
    },
    async drain(): Promise<void> {
      stop.abort();
      await worker.drain({ finishMs: 1_000, handBackMs: 9_000 });
      await close();
    },
  };
}

const nothing = async (): Promise<void> => undefined;

/** Pulls each image once. Follows a policy and binds an endpoint as a real rollout does, but sends no request. */
function simulatedRollout({ pull = nothing, work = nothing }: Simulation): AttemptServices['runRollout'] {
  const images = new Map<string, Promise<void>>();
  const ensureImage = async (image: string): Promise<void> => {
    const ready = images.get(image) ?? pull(image);
    images.set(image, ready);
    await ready;
  };
  const run = async ({ job, run, signal, live, services }: Task): Promise<void> => {
    const given = { signal, turns: (trajectory: Trajectory) => live.turns(trajectory) };
    if (!run.policy) return await work(job, given);
    using _followed = await services.policies.follow(run.policy);
    using _bound = services.endpoints.bind(run.policy.urls, job.rollout_id);
    await work(job, given);
  };
  return async (task): Promise<Judged> => {
    await task.clock.time('image', () => ensureImage(task.instance.image));
    await task.clock.time('agent', () => run(task));
    const left = { end: null, patch: '', tooLarge: false, agentSeconds: 0, policyPace: null };
    return {
      facts: factsOf(task, left, { blank: 'tests_run' }),
      reward: 0,
      row: 'simulated',
      resolved: false,
    };
  };
}

const nothingRuns = (): Promise<never> =>
  Promise.reject(new RolloutFailure('bug', 'a simulated worker runs nothing'));

export const emptyRuntime: Runtime = {
  name: 'fake',
  isolates: true,
  placesByImage: true,
  check: async () => ({
    usable: true,
    version: null,
    limits: { cpu: 'none', memory: 'none', pids: 'none', disk: 'none' },
    problems: [],
  }),
  ensureImage: nothingRuns,
  start: nothingRuns,
  listOwned: async () => [],
  remove: async () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

export const noThreads: Threads = {
  expect: () => undefined,
  run: nothingRuns,
  [Symbol.asyncDispose]: async () => undefined,
};

/** Reads the artifact usage as a real worker does, but never stops claims: one machine simulates many nodes. */
const noPressure = ({ farm }: Node): Pressure => ({
  async reason() {
    await farm.artifacts.usage();
    return null;
  },
  lagSeconds: () => 0,
  disk: () => ({ freeBytes: 0, sizeBytes: 0 }),
  [Symbol.dispose]: () => undefined,
});
