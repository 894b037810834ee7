/** Waits that a signal or a time limit ends. The awaited work goes on, because a promise cannot be cancelled. */

/** Calls `action` once when the signal is aborted, or at once when it already is. Dispose the result to remove the listener. */
export function onAbort(signal: AbortSignal | undefined, action: () => void): Disposable {
  if (signal?.aborted) action();
  else signal?.addEventListener('abort', action, { once: true });
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', action) };
}

/** Resolves when the signal is aborted. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** Settles as `promise` does, or rejects with the signal's reason as soon as it is aborted. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  using _listener = onAbort(signal, () => aborted.reject(signal.reason));
  return await Promise.race([aborted.promise, promise]);
}

export type Ending<T> = { by: 'itself'; value: T } | { by: 'timeout' } | { by: 'abort' };

/** Waits for `promise` and returns what ended the wait: the promise itself, the time limit or the signal. Rejects as `promise` does. */
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
