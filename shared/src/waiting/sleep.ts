import { onAbort } from './abort.ts';

/** @throws the signal's reason when it is aborted */
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

/** Returns after the time or when the signal is aborted; never rejects. */
export async function sleepAtMost(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, signal).catch(() => undefined);
}
