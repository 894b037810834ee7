import { onAbort } from './abort.ts';

/** Waits `ms` milliseconds. Throws the reason of the signal when the signal aborts. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  using _listener = onAbort(signal, () => reject(signal?.reason));
  try {
    await promise;
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until the time is over or the signal aborts; never rejects. */
export async function sleepAtMost(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, signal).catch(() => undefined);
}
