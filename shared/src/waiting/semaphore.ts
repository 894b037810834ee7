/** Limits concurrent work; callers wait in order of arrival. */
import { onAbort } from './abort.ts';
import { sleep } from './sleep.ts';

export type Semaphore = {
  /** Waits for a slot and returns the function that releases it; a second call has no effect. @throws the reason of the signal */
  acquire(signal?: AbortSignal): Promise<() => void>;
  run<T>(work: () => Promise<T>): Promise<T>;
};

/** Creates a semaphore. @param gapMs minimum time between two starts of `run` */
export function createSemaphore(slots: number, gapMs = 0): Semaphore {
  let free = slots;
  let nextAt = 0;
  const waiting = new Set<() => void>();
  const release = (): void => {
    const [next] = waiting;
    if (next) next();
    else free++;
  };
  const enter = async (signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    if (free > 0) {
      free--;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const go = (): void => {
      waiting.delete(go);
      resolve();
    };
    waiting.add(go);
    // After the caller got the slot, an abort does not reject, because the caller must release the slot.
    using _listener = onAbort(signal, () => waiting.delete(go) && reject(signal?.reason));
    await promise;
  };
  const acquire = async (signal?: AbortSignal): Promise<() => void> => {
    await enter(signal);
    let acquired = true;
    return () => {
      if (acquired) release();
      acquired = false;
    };
  };
  return {
    acquire,
    async run(work) {
      const leave = await acquire();
      try {
        const now = performance.now();
        const startAt = Math.max(now, nextAt);
        nextAt = startAt + gapMs;
        if (startAt > now) await sleep(startAt - now);
        return await work();
      } finally {
        leave();
      }
    },
  };
}
