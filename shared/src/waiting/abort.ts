/** Waits with a signal or a time limit. The awaited work continues after the wait, because a promise cannot be cancelled. */

/** Calls `action` when the signal aborts, or immediately if it is aborted. Dispose the result to remove the listener. */
export function onAbort(signal: AbortSignal | undefined, action: () => void): Disposable {
  if (signal?.aborted) action();
  else signal?.addEventListener('abort', action, { once: true });
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', action) };
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** Returns the value of `promise`, or rejects with the reason of the signal or of `promise`. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  using _listener = onAbort(signal, () => aborted.reject(signal.reason));
  return await Promise.race([aborted.promise, promise]);
}

export type Ending<T> = { by: 'itself'; value: T } | { by: 'timeout' } | { by: 'abort' };

/** Returns what ended the wait: `promise`, the time limit or the signal. Rejects if `promise` rejects. */
export async function waitAtMost<T>(
  promise: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Ending<T>> {
  const left = Promise.withResolvers<Ending<T>>();
  const timer = setTimeout(() => left.resolve({ by: 'timeout' }), timeoutMs);
  using _listener = onAbort(signal, () => left.resolve({ by: 'abort' }));
  try {
    const itself = promise.then((value): Ending<T> => ({ by: 'itself', value }));
    return await Promise.race([itself, left.promise]);
  } finally {
    clearTimeout(timer);
  }
}
