/** Seats of workers, and rollouts that one worker hands to another: what placement by image needs of Redis. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Keys } from './keys.ts';
import { LIFE_MS } from './registry.ts';
import { loadScript } from './script.ts';

/** A job of the queue with the token of the lock it is held by. */
const Handed = z.object({ job: z.string(), token: z.string() });
export type Handed = z.infer<typeof Handed>;

export type Placement = {
  /**
   * Takes a seat with a worker that has the image, or else (`home`: when no such worker lives; `any`: when they are full) with
   * another of `places`, which are in the order that the image prefers. Null: nobody has one.
   */
  seat<T extends { worker: string }>(
    rollout: { id: string; image: string },
    places: readonly T[],
    where: 'home' | 'any',
  ): Promise<T | null>;
  leave(worker: string, rolloutId: string): Promise<void>;
  /** Makes the seats of a worker what they should be: `stale` go, `held` stay for another minute. Answers all taken before. */
  reconcileSeats(worker: string, held: readonly string[], stale: readonly string[]): Promise<string[]>;
  hand(worker: string, handed: Handed): Promise<void>;
  /** What was handed to this worker, waited for a second at most on a connection of its own. */
  receive(worker: string): Promise<Handed | null>;
  /** Ends a wait of {@link receive}, for a worker that receives nothing more. Takes nothing away. */
  wake(worker: string): Promise<void>;
};

/** A worker without a beat for so long gets no jobs; beats come each second. */
const SILENT_MS = 4_000;
const SEATS_LIFE_S = 60;
/** For so long after the last rollout of an image its worker is assumed to have the image. */
const IMAGES_LIFE_S = 6 * 3600;
/** Longer than the lock that goes with the job. */
const HANDED_LIFE_S = 30;
const BLOCK_SECONDS = 1;
/** Handed by a worker to itself. */
const WAKE = '';

export function createPlacement(redis: Redis, keys: Keys, connect: () => Redis): Placement {
  const take = loadScript(redis, 'seat_take');
  let blocking: Redis | null = null;
  return {
    async seat({ id, image }, places, where) {
      const of = (key: (worker: string) => string): string[] => places.map(({ worker }) => key(worker));
      const reply = await take(
        [...of(keys.worker), ...of(keys.seats), ...of(keys.homes)],
        [id, image, where, LIFE_MS - SILENT_MS, SEATS_LIFE_S, IMAGES_LIFE_S],
      );
      return places[Number(reply) - 1] ?? null;
    },
    leave: async (worker, rolloutId) => void (await redis.srem(keys.seats(worker), rolloutId)),
    async reconcileSeats(worker, held, stale) {
      const key = keys.seats(worker);
      const write = redis.multi().smembers(key);
      if (stale.length > 0) write.srem(key, ...stale);
      if (held.length > 0) write.sadd(key, ...held);
      const [taken] = (await write.expire(key, SEATS_LIFE_S).exec()) ?? [];
      return (taken?.[1] ?? []) as string[];
    },
    async hand(worker, handed) {
      const key = keys.handed(worker);
      await redis.multi().rpush(key, JSON.stringify(handed)).expire(key, HANDED_LIFE_S).exec();
    },
    async receive(worker) {
      blocking ??= connect();
      const reply = await blocking.blpop(keys.handed(worker), BLOCK_SECONDS);
      return reply && reply[1] !== WAKE ? Handed.parse(JSON.parse(reply[1])) : null;
    },
    async wake(worker) {
      const key = keys.handed(worker);
      await redis.multi().rpush(key, WAKE).expire(key, HANDED_LIFE_S).exec();
    },
  };
}
