/**
 * Keeps sandboxes ready for the rollouts that are next in the queue: one is made at a time, while the node has CPU, memory and disk to
 * spare. Nothing is kept while the worker claims nothing.
 */
import { cpus } from 'node:os';
import type { ReadyImage, SandboxPlan } from '@swefarm/sandbox';
import {
  errorMessage,
  type Instance,
  isSandboxAgent,
  type RolloutJob,
  type RunRecord,
  sleepAtMost,
  untilAborted,
  waitAtMost,
} from '@swefarm/shared';
import { refuseExcess, sandboxPlan } from '../rollout/containers.ts';
import type { Node } from './node.ts';
import type { Pressure } from './pressure.ts';

const LOOK_MS = 500;
/** How often those that wait are looked after, in looks: each asks the engine. */
const TIDY_LOOKS = 4;
/** Jobs of the queue that are read for each sandbox that may wait: others of this farm take most of the first ones. */
const JOBS_PER_SANDBOX = 4;
const MOST_JOBS = 32;
/** How long a look waits for an image, and how many are fetched in the background. */
const IMAGE_MS = 1_000;
const MOST_FETCHED = 2;
/** An image that could not be fetched is left alone for this long: a registry counts each request, and may then refuse a rollout's own. */
const FAILED_MS = 60_000;

export type WarmingDeps = {
  node: Node;
  pressure: Pick<Pressure, 'hasRoom'>;
  /** Cores of this machine that must have been idle since the last look; 0: any. */
  idleCpus: number;
};

export type Warming = {
  /** Removes what waits, and makes nothing more; or begins again. */
  setPaused(paused: boolean): void;
  /** As pausing, for good; resolves when the loop has ended. The removals may go on. */
  end(): Promise<void>;
};

/** Does nothing at all where no sandbox may wait. */
export function startWarming({ node, pressure, idleCpus }: WarmingDeps): Warming {
  const { warm, log } = node;
  if (warm.most === 0) return { setPaused: () => undefined, end: async () => undefined };
  const over = new AbortController();
  const wanted = createWanted(node);
  const hasIdleCpus = watchIdleCpus(idleCpus);
  let paused = false;
  const look = async (looks: number): Promise<void> => {
    const idle = hasIdleCpus();
    if (paused) return;
    // While Redis is away it does not answer at all.
    const plans = await untilAborted(wanted(over.signal), over.signal);
    if (looks % TIDY_LOOKS === 0) await warm.tidy(plans);
    const plan = idle ? warm.lacks(plans) : null;
    if (plan && !paused && (await pressure.hasRoom())) await warm.make(plan);
  };
  const looking = (async () => {
    for (let looks = 0; !over.signal.aborted; looks++) {
      await look(looks).catch((error: unknown) =>
        log.debug({ err: errorMessage(error) }, 'what is next in the queue is not known'),
      );
      await sleepAtMost(LOOK_MS, over.signal);
    }
  })();
  return {
    setPaused(next) {
      paused = next;
      if (next) warm.close('paused');
      else if (!over.signal.aborted) warm.open();
    },
    async end() {
      over.abort();
      warm.close('ended');
      await looking;
    },
  };
}

type Known = { run: RunRecord; instance: Instance };

const nameOf = ({ run_id, instance_id }: RolloutJob): string => `${run_id} ${instance_id}`;

/**
 * What the next rollouts of the queue need, first to last; those that this worker would not run with a sandbox are left out, and those
 * whose image is not there yet.
 */
function createWanted(node: Node): (signal: AbortSignal) => Promise<SandboxPlan[]> {
  const { farm, warm } = node;
  const count = Math.min(MOST_JOBS, warm.most * JOBS_PER_SANDBOX);
  const images = createImages(node);
  let known = new Map<string, Known | null>();
  return async (signal) => {
    const jobs = (await farm.jobs.next(count)).filter(({ image }) => node.router?.isFirst(image) ?? true);
    const next = new Map(jobs.map((job) => [nameOf(job), job]));
    known = new Map(
      await Promise.all(
        [...next].map(
          async ([name, job]) => [name, known.get(name) ?? (await readKnown(node, job))] as const,
        ),
      ),
    );
    const plans = new Map<string, SandboxPlan | null>();
    for (const [name, one] of known) plans.set(name, one && (await planOf(node, one, images, signal)));
    return jobs.flatMap((job) => plans.get(nameOf(job)) ?? []);
  };
}

/** Null: this version cannot read its records, or they are gone; whoever claims the job says so. */
async function readKnown({ farm }: Node, { run_id, instance_id }: RolloutJob): Promise<Known | null> {
  const read = Promise.all([farm.runs.get(run_id), farm.runs.getInstance(run_id, instance_id)]);
  const [run, instance] = await read.catch(() => [null, null]);
  return run && instance && { run, instance };
}

/** Null: no agent works in a sandbox, none can start here, or its image is not there yet. */
async function planOf(
  node: Node,
  known: Known,
  images: ReturnType<typeof createImages>,
  signal: AbortSignal,
): Promise<SandboxPlan | null> {
  if (!isSandboxAgent(known.run.agent.type)) return null;
  try {
    refuseExcess(known, node);
  } catch {
    // The rollout itself is refused when it is claimed.
    return null;
  }
  const image = await images(known.instance, signal);
  return image && sandboxPlan(known, node, image);
}

/** Makes images ready as for a rollout. One that takes long is fetched in the background: null until it is there. */
function createImages({ runtime, log }: Node) {
  const fetching = new Map<string, Promise<ReadyImage | null>>();
  const failedAt = new Map<string, number>();
  const failedLately = (image: string): boolean => {
    const isOver = performance.now() - (failedAt.get(image) ?? Number.NEGATIVE_INFINITY) >= FAILED_MS;
    if (isOver) failedAt.delete(image);
    return !isOver;
  };
  const ensure = async (image: string, instanceId: string, signal: AbortSignal) => {
    try {
      return await runtime.ensureImage(image, signal, instanceId);
    } catch (error) {
      if (!signal.aborted) failedAt.set(image, performance.now());
      log.debug({ image, err: errorMessage(error) }, 'an image could not be made ready ahead');
      return null;
    } finally {
      fetching.delete(image);
    }
  };
  return async (
    { image, instance_id }: Pick<Instance, 'image' | 'instance_id'>,
    signal: AbortSignal,
  ): Promise<ReadyImage | null> => {
    if (failedLately(image) || (!fetching.has(image) && fetching.size >= MOST_FETCHED)) return null;
    const fetched = fetching.get(image) ?? ensure(image, instance_id, signal);
    if (!fetching.has(image)) fetching.set(image, fetched);
    const ending = await waitAtMost(fetched, IMAGE_MS, signal);
    return ending.by === 'itself' ? ending.value : null;
  };
}

/** Whether so many cores of the machine did nothing since the last call. The first call has nothing to compare with, and says no. */
function watchIdleCpus(least: number): () => boolean {
  const idleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0);
  let before = idleMs();
  let at = performance.now();
  return () => {
    const [idle, now] = [idleMs(), performance.now()];
    const cores = (idle - before) / Math.max(1, now - at);
    [before, at] = [idle, now];
    return least === 0 || cores >= least;
  };
}
