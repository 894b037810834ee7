/** The clock of Redis, which the whole farm shares. */
import type { Redis } from 'ioredis';

export type Clock = {
  /** Milliseconds since the epoch, by the last time of Redis and the monotonic clock. */
  now(): number;
  /** Reads the time of Redis. */
  ask(): Promise<number>;
  /** Applies a reply to TIME. */
  observe(reply: readonly [seconds: string | number, microseconds: string | number]): number;
};

export function createClock(redis: Redis): Clock {
  let ahead = Date.now() - performance.now();
  const clock: Clock = {
    now: () => Math.round(performance.now() + ahead),
    ask: async () => clock.observe((await redis.time()) as unknown as [string, string]),
    observe([seconds, microseconds]) {
      const time = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
      ahead = time - performance.now();
      return time;
    },
  };
  return clock;
}
