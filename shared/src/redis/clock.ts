import type { Redis } from 'ioredis';

/** The clock of Redis, which the whole farm shares. */
export type Clock = ReturnType<typeof createClock>;

export function createClock(redis: Redis) {
  let ahead = Date.now() - performance.now();
  const clock = {
    /** Returns milliseconds since the epoch: the last time that Redis reported, plus the time elapsed since. */
    now: (): number => Math.round(performance.now() + ahead),
    /** Reads the time of Redis, in milliseconds since the epoch. */
    ask: async (): Promise<number> => clock.observe((await redis.time()) as unknown as [string, string]),
    /** Sets the clock by a reply to the command TIME. */
    observe([seconds, microseconds]: readonly [string | number, string | number]): number {
      const time = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
      ahead = time - performance.now();
      return time;
    },
  };
  return clock;
}
