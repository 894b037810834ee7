/** The time by Redis's clock, which the whole farm shares, whatever the clocks of its nodes say. */
import type { Redis } from 'ioredis';

export type Clock = {
  /** Milliseconds since the epoch, as Redis last said, and by the monotonic clock since then. */
  now(): number;
  /** Asks Redis. */
  ask(): Promise<number>;
  /** What a reply to TIME said. */
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
