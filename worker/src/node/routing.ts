/**
 * Routes a claimed rollout to a worker whose node has the image, while that worker has a free seat (a slot), so that the nodes of
 * a farm pull each image about once. A job for another worker is forwarded with its lock, which costs no attempt.
 */
import { createSingleFlight, type Farm, type RolloutJob } from '@swefarm/shared';
import type { Identity } from './reaper.ts';

export type Route =
  | { action: 'run_here' }
  | { action: 'forward'; worker: string }
  /** The workers that have the image are full, but one may have a free seat soon. */
  | { action: 'retry_later'; delayMs: number };

const RUN_HERE: Route = { action: 'run_here' };

export type Router = ReturnType<typeof createRouter>;

/**
 * Number of workers that are tried for a seat, in order of preference. `home`: workers that have the image or, if there are none, the
 * worker with the fewest images. `any`: also every other worker with a free seat.
 */
const MOST_TRIED = { home: 16, any: 32 } as const;
/** Age at which the list of workers is read again. The age grows with the list, because a longer list costs more to read. */
const KNOWN_MS = 2_000;
const KNOWN_MS_PER_WORKER = 20;
const FULL_MS = 500;

type Known = Pick<Identity, 'worker' | 'node'>;

export function createRouter(farm: Farm, self: Known, waitMs: number) {
  let known: Known[] = [];
  let until = 0;
  const reading = createSingleFlight<void>();
  let unclaimed = new Set<string>();
  const read = async (): Promise<void> => {
    const all = await farm.registry.list();
    known = all.filter(({ placed, worker }) => placed && worker !== self.worker);
    until = performance.now() + KNOWN_MS + KNOWN_MS_PER_WORKER * all.length;
  };
  const others = async (): Promise<Known[]> => {
    if (performance.now() > until) await reading.run('workers', read);
    return known;
  };
  const alone = (): boolean => known.every(({ node }) => node === self.node);

  return {
    /** Reserves a seat for the job on the worker that should run it; `anywhere`: on this worker, whatever the image. Throws Redis errors. */
    async route(job: RolloutJob, anywhere: boolean): Promise<Route> {
      const rest = await others();
      // All known workers are on this node and share its images.
      if (alone()) return RUN_HERE;
      const image = job.image ?? job.instance_id;
      const order = ranking(image, [...rest, self]);
      const left = job.submitted_at + waitMs - farm.clock.now();
      const where = left > 0 ? 'home' : 'any';
      const tried = anywhere
        ? [self]
        : [...order.slice(0, MOST_TRIED[where]), ...(where === 'any' ? [self] : [])];
      const seat = await farm.placement.seat({ id: job.rollout_id, image }, tried, where);
      if (seat) return seat.worker === self.worker ? RUN_HERE : { action: 'forward', worker: seat.worker };
      if (anywhere) return RUN_HERE;
      return { action: 'retry_later', delayMs: where === 'home' ? Math.min(left, waitMs) : FULL_MS };
    },
    /** Frees the seat of a rollout that no longer runs on this worker. Never throws. */
    async leave(rolloutId: string): Promise<void> {
      unclaimed.delete(rolloutId);
      // If this call fails, `reconcileSeats` frees the seat later.
      if (!alone()) await farm.placement.leave(self.worker, rolloutId).catch(() => undefined);
    },
    /** Frees seats whose job never arrived. Call this every few seconds with the rollouts that run on this worker. */
    async reconcileSeats(running: readonly string[]): Promise<void> {
      if (alone()) return;
      const here = new Set(running);
      const stale = [...unclaimed].filter((id) => !here.has(id));
      const taken = await farm.placement.reconcileSeats(self.worker, running, stale);
      const gone = new Set(stale);
      unclaimed = new Set(taken.filter((id) => !here.has(id) && !gone.has(id)));
    },
  };
}

/**
 * Returns the workers in the order in which they should run rollouts of `image`: by node, and within a node by worker, because the workers
 * of a node share its images. Every worker that knows the same workers computes the same order. By rendezvous hashing, a node that joins or
 * leaves moves only the images of that node.
 */
export function ranking<T extends { worker: string; node: string }>(
  image: string,
  workers: readonly T[],
): T[] {
  const imageHash = hash(image);
  const weighted = workers.map((one) => ({
    one,
    node: mix(imageHash ^ hash(one.node)),
    worker: mix(imageHash ^ hash(one.worker)),
  }));
  weighted.sort(
    (a, b) =>
      b.node - a.node || (a.one.node < b.one.node ? -1 : a.one.node > b.one.node ? 1 : b.worker - a.worker),
  );
  return weighted.map(({ one }) => one);
}

/** FNV-1a hash, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

/** Finaliser of MurmurHash3. */
function mix(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
