/** Loading values once, and again and again: the value, the error, and the next request. */
import { useEffect, useState } from 'react';
import { Unauthorized } from './api.ts';

export type Loaded<T> = { value: T | null; error: Error | null };

/** Set by the app: what to do when the server wants a token. */
let onUnauthorized: () => void = () => undefined;
export function whenUnauthorized(action: () => void): void {
  onUnauthorized = action;
}

/**
 * Calls `load` now and again after the milliseconds it answers with (null: no more); `key` names what is loaded.
 * While the server is away the last value stays, with the error beside it.
 */
export function useFollowed<T>(
  key: string,
  load: (previous: T | null, signal: AbortSignal) => Promise<{ value: T; againMs: number | null }>,
): Loaded<T> {
  const [state, setState] = useState<Loaded<T> & { key: string }>({ key, value: null, error: null });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for everything that `load` depends on
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let previous: T | null = null;
    const request = async (): Promise<void> => {
      let againMs: number | null = AFTER_ERROR_MS;
      try {
        const next = await load(previous, stop.signal);
        if (stop.signal.aborted) return;
        previous = next.value;
        againMs = next.againMs;
        setState({ key, value: previous, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Unauthorized) {
          onUnauthorized();
          return;
        }
        setState({ key, value: previous, error: error as Error });
      }
      if (againMs !== null) timer = setTimeout(request, againMs);
    };
    void request();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return state.key === key ? state : { value: null, error: null };
}

const AFTER_ERROR_MS = 3_000;

/** What is loaded once, when `wanted`. */
export function useOnce<T>(
  key: string,
  wanted: boolean,
  load: (signal: AbortSignal) => Promise<T>,
): Loaded<T> {
  return useFollowed<T>(`${wanted} ${key}`, async (_previous, signal) => {
    if (!wanted) return await new Promise<never>(() => undefined);
    return { value: await load(signal), againMs: null };
  });
}
