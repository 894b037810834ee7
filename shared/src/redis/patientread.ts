import { exponentialBackoff } from '../waiting/retry.ts';
import { sleep } from '../waiting/sleep.ts';
import { asUnusable } from './outage.ts';
import type { Store } from './part.ts';

/** Pauses in ms between two reads. Unlike a blocking read, polling can be aborted and needs no second connection. */
const pauseMs = exponentialBackoff(10, 250, 1.5);

/**
 * Repeats `read` until the value is `enough` or `blockMs` have passed, and returns the last value. Waits up to `patienceMs` in an outage.
 * @throws UnusableError `redis_unreachable` after `patienceMs`; other errors of Redis immediately
 */
export async function readPatiently<T>(
  { address }: Pick<Store, 'address'>,
  read: () => Promise<T>,
  enough: (value: T) => boolean,
  { blockMs, patienceMs, signal }: { blockMs: number; patienceMs: number; signal?: AbortSignal },
): Promise<T> {
  const until = Date.now() + blockMs;
  let awaySince: number | null = null;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    try {
      const value = await read();
      awaySince = null;
      if (enough(value) || Date.now() >= until) return value;
    } catch (error) {
      const outage = asUnusable(error, address);
      awaySince ??= Date.now();
      if (outage?.code !== 'redis_unreachable' || Date.now() - awaySince >= patienceMs) throw outage ?? error;
    }
    await sleep(pauseMs(tries), signal);
  }
}
