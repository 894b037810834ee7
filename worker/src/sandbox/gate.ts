/**
 * At most `slots` at a time: an engine that is handed everything at once gets slower, not faster. With `gapMs` they also begin
 * no closer than that to one another.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export function createGate(slots: number, gapMs = 0): <T>(work: () => Promise<T>) => Promise<T> {
  let free = slots;
  let next = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      const now = performance.now();
      const at = Math.max(now, next);
      next = at + gapMs;
      if (at > now) await sleep(at - now);
      return await work();
    } finally {
      const other = waiting.shift();
      if (other) other();
      else free++;
    }
  };
}
