/** The clock of Redis, which the whole farm shares. */
import type { Redis } from 'ioredis';

export type Clock = {
  /** Returns milliseconds since the epoch: the last time that Redis reported, plus the time elapsed since. */
  now(): number;
  /** Reads the time of Redis, in milliseconds since the epoch. */
  ask(): Promise<number>;
  /** Sets the clock by a reply to the command TIME. */
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
