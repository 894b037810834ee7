import { sleep } from './sleep.ts';

/** Returns the milliseconds to wait after the try with this number, from 1. */
export type Backoff = (tries: number) => number;

export const linearBackoff =
  (stepMs: number, longestMs = Number.POSITIVE_INFINITY): Backoff =>
  (tries) =>
    Math.min(stepMs * tries, longestMs);

export const exponentialBackoff =
  (firstMs: number, longestMs: number, factor = 2): Backoff =>
  (tries) =>
    Math.min(firstMs * factor ** (tries - 1), longestMs);

/** When to stop trying; by default only when the signal aborts. */
export type Patience = {
  pauseMs: number | Backoff;
  /** Milliseconds after which no further try starts. */
  withinMs?: number;
  tries?: number;
  signal?: AbortSignal | undefined;
};

export type RetryOptions = Patience & {
  isPassing: (error: unknown) => boolean;
  /** Called before each pause. */
  onRetry?: (error: unknown, tries: number) => void;
};

/** Repeats a call that fails temporarily. Throws the error of the last try, or the reason of the signal. */
export async function retry<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const patience = startPatience(options);
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!options.isPassing(error) || patience.isOver()) throw error;
      options.onRetry?.(error, patience.tries());
      await patience.pause();
    }
  }
}

/** Counts the tries and the time of `retry` and `poll`. */
export function startPatience({ pauseMs, withinMs, tries: most, signal }: Patience) {
  const until = performance.now() + (withinMs ?? Number.POSITIVE_INFINITY);
  let tries = 1;
  return {
    tries: () => tries,
    isOver: () => tries >= (most ?? Number.POSITIVE_INFINITY) || performance.now() >= until,
    async pause(): Promise<void> {
      const wanted = typeof pauseMs === 'number' ? pauseMs : pauseMs(tries);
      tries++;
      await sleep(Math.min(wanted, Math.max(1, until - performance.now())), signal);
    },
  };
}
