/** Assigns rollouts to workers that have their image. A seat is a reserved slot of a worker; a worker forwards rollouts to others. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Store } from './part.ts';
import { LIFE_MS } from './registry.ts';
import { loadScript } from './script.ts';

/** A forwarded job of the queue, with the token of its lock. */
const Handed = z.object({ job: z.string(), token: z.string() });
export type Handed = z.infer<typeof Handed>;

/** Time in ms after the last heartbeat from which a worker gets no forwarded jobs. */
const SILENT_MS = 4_000;
const SEATS_LIFE_S = 60;
/** Seconds after the last rollout of an image for which its worker is assumed to have the image. */
const IMAGES_LIFE_S = 6 * 3600;
/** Life time of a forwarded job in seconds: longer than the lock of the job. */
const HANDED_LIFE_S = 30;
const BLOCK_SECONDS = 1;
const WAKE = '';

export function createPlacement({ redis, keys, connect }: Store) {
  const take = loadScript(redis, 'seat_take');
  let blocking: Redis | null = null;
  const push = async (worker: string, text: string): Promise<void> => {
    const key = keys.handed(worker);
    await redis.multi().rpush(key, text).expire(key, HANDED_LIFE_S).exec();
  };
  return {
    /**
     * Reserves a seat of a worker that has the image, otherwise of another worker. `home`: only if no worker that has the image is alive;
     * `any`: also if these are full. Null: no free seat. `workers`: sorted by preference for the image.
     */
    async seat<T extends { worker: string }>(
      { id, image }: { id: string; image: string },
      workers: readonly T[],
      where: 'home' | 'any',
    ): Promise<T | null> {
      const of = (key: (worker: string) => string): string[] => workers.map(({ worker }) => key(worker));
      const reply = await take(
        [...of(keys.worker), ...of(keys.seats), ...of(keys.homes)],
        [id, image, where, LIFE_MS - SILENT_MS, SEATS_LIFE_S, IMAGES_LIFE_S],
      );
      return workers[Number(reply) - 1] ?? null;
    },
    leave: async (worker: string, rolloutId: string): Promise<void> =>
      void (await redis.srem(keys.seats(worker), rolloutId)),
    /** Renews the `reserved` seats of a worker for a minute and removes the `stale` ones. Returns the seats before the change. */
    async reconcileSeats(
      worker: string,
      reserved: readonly string[],
      stale: readonly string[],
    ): Promise<string[]> {
      const key = keys.seats(worker);
      const write = redis.multi().smembers(key);
      if (stale.length > 0) write.srem(key, ...stale);
      if (reserved.length > 0) write.sadd(key, ...reserved);
      const [taken] = (await write.expire(key, SEATS_LIFE_S).exec()) ?? [];
      return (taken?.[1] ?? []) as string[];
    },
    hand: (worker: string, handed: Handed): Promise<void> => push(worker, JSON.stringify(handed)),
    /** Waits at most a second for a job forwarded to this worker. */
    async receive(worker: string): Promise<Handed | null> {
      blocking ??= connect();
      const reply = await blocking.blpop(keys.handed(worker), BLOCK_SECONDS);
      return reply && reply[1] !== WAKE ? Handed.parse(JSON.parse(reply[1])) : null;
    },
    /** Ends a wait of `receive`. */
    wake: (worker: string): Promise<void> => push(worker, WAKE),
  };
}
