/**
 * Routes a claimed rollout to a worker whose node has its image, as long as seats are free, so that the nodes of a farm pull each
 * image about once. A claimed job that belongs elsewhere is forwarded with its lock; that costs no attempt.
 */

import type { Runtime } from '@swefarm/sandbox';
import type { Farm, RolloutJob, WorkerConfig } from '@swefarm/shared';
import type { Identity } from './identity.ts';
import { ranking } from './ranking.ts';

export type Route =
  | { action: 'run_here' }
  | { action: 'forward'; worker: string }
  /** The node with the image is full, and may have a free seat soon. */
  | { action: 'retry_later'; delayMs: number };

const RUN_HERE: Route = { action: 'run_here' };

export type Router = {
  /** Reserves a seat for the job on the worker that shall run it. `anywhere`: here, whatever its image. Throws errors of Redis. */
  route(job: RolloutJob, anywhere: boolean): Promise<Route>;
  /** Call it when the rollout no longer runs here. Never throws. */
  leave(rolloutId: string): Promise<void>;
  /** Call it every few seconds with the rollouts that run here: it frees seats whose job never arrived. */
  reconcileSeats(running: readonly string[]): Promise<void>;
};

/** How many workers are tried for a seat, in order of preference. `home`: those that have the image, or if there are none, the one
 * with the fewest images. `any`: also every other one with a free seat. */
const LOOKS = { home: 16, any: 32 } as const;
/** How old the list of other workers may be: reading it costs more the more workers there are. */
const KNOWN_MS = 2_000;
const KNOWN_MS_PER_WORKER = 20;
const FULL_MS = 500;

export function placesHere(
  config: Pick<WorkerConfig, 'placement'>,
  runtime: Pick<Runtime, 'placesByImage'>,
): boolean {
  return config.placement === 'auto' && runtime.placesByImage;
}

export function createRouter(farm: Farm, self: Pick<Identity, 'worker' | 'node'>, waitMs: number): Router {
  type Known = Pick<Identity, 'worker' | 'node'>;
  let known: Known[] = [];
  let until = 0;
  let asking: Promise<void> | null = null;
  let unclaimed = new Set<string>();
  const ask = async (): Promise<void> => {
    const all = await farm.registry.list();
    known = all.filter(({ placed, worker }) => placed && worker !== self.worker);
    until = performance.now() + KNOWN_MS + KNOWN_MS_PER_WORKER * all.length;
  };
  const others = async (): Promise<Known[]> => {
    if (performance.now() > until) {
      asking ??= ask().finally(() => {
        asking = null;
      });
      await asking;
    }
    return known;
  };
  const alone = (): boolean => known.every(({ node }) => node === self.node);

  return {
    async route(job, anywhere) {
      const rest = await others();
      // Workers of one node share its images, so there is nowhere better to run.
      if (alone()) return RUN_HERE;
      const image = job.image ?? job.instance_id;
      const order = ranking(image, [...rest, self]);
      const left = job.submitted_at + waitMs - farm.clock.now();
      const where = left > 0 ? 'home' : 'any';
      const looked = anywhere
        ? [self]
        : [...order.slice(0, LOOKS[where]), ...(where === 'any' ? [self] : [])];
      const seat = await farm.placement.seat({ id: job.rollout_id, image }, looked, where);
      if (seat) return seat.worker === self.worker ? RUN_HERE : { action: 'forward', worker: seat.worker };
      if (anywhere) return RUN_HERE;
      return { action: 'retry_later', delayMs: where === 'home' ? Math.min(left, waitMs) : FULL_MS };
    },
    async leave(rolloutId) {
      unclaimed.delete(rolloutId);
      // If this fails, `reconcileSeats` frees the seat later.
      if (!alone()) await farm.placement.leave(self.worker, rolloutId).catch(() => undefined);
    },
    async reconcileSeats(running) {
      if (alone()) return;
      const here = new Set(running);
      const stale = [...unclaimed].filter((id) => !here.has(id));
      const taken = await farm.placement.reconcileSeats(self.worker, running, stale);
      const gone = new Set(stale);
      unclaimed = new Set(taken.filter((id) => !here.has(id) && !gone.has(id)));
    },
  };
}
