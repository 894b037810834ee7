/** Lets concurrent callers share the same running work. */
import { untilAborted } from './abort.ts';

export type SingleFlight<T> = {
  /** Starts `work`, or waits for the running work with this key. An aborted signal ends the wait, not the work. */
  run(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  isUnderWay(key: string): boolean;
};

export function createSingleFlight<T>(): SingleFlight<T> {
  const underWay = new Map<string, Promise<T>>();
  return {
    run(key, work, signal) {
      let running = underWay.get(key);
      if (!running) {
        running = work().finally(() => underWay.delete(key));
        // Without this handler, a failure would be an unhandled rejection if no caller waits.
        running.catch(() => undefined);
        underWay.set(key, running);
      }
      return signal ? untilAborted(running, signal) : running;
    },
    isUnderWay: (key) => underWay.has(key),
  };
}

export type Lazy<T> = {
  /** Starts the work at the first call, and again at the next call after a failure. */
  get(): Promise<T>;
  /** Returns the started work that has not failed; null if there is none. */
  started(): Promise<T> | null;
};

export function createLazy<T>(work: () => Promise<T>): Lazy<T> {
  let started: Promise<T> | null = null;
  return {
    get() {
      started ??= work().catch((error: unknown) => {
        started = null;
        throw error;
      });
      return started;
    },
    started: () => started,
  };
}
