/** Loads the data of a view, and reloads it while the view is open. */
import useSWR, { type SWRConfiguration, useSWRConfig } from 'swr';
import { get } from './api.ts';

const AFTER_ERROR_MS = 3_000;

/** Settings of one view's cache. The view shows the last value while the server does not answer. */
export const LOADING: SWRConfiguration = {
  provider: () => new Map(),
  keepPreviousData: true,
  compare: Object.is,
  dedupingInterval: 0,
  revalidateOnFocus: false,
  // An offline browser still reaches a gateway on the loopback.
  refreshWhenOffline: true,
  onErrorRetry: (_error, _key, _config, revalidate, options) =>
    void setTimeout(revalidate, AFTER_ERROR_MS, options),
};

export type Loaded<T> = { value: T | null; error: Error | null };

/**
 * Loads the value of `path` (null: nothing is loaded), and reloads the value after `againMs` milliseconds (0: never).
 *
 * @param load returns the value from the previous one; by default the answer to a GET of `path`
 */
export function useLoaded<T>(
  path: string | null,
  againMs: (value: T) => number = () => 0,
  load: (previous: T | null) => Promise<T> = () => get<T>(path ?? ''),
): Loaded<T> {
  const { cache } = useSWRConfig();
  const { data, error } = useSWR<T, Error>(path, () => load((cache.get(path ?? '')?.data as T) ?? null), {
    refreshInterval: (latest) => (latest === undefined ? 0 : againMs(latest)),
  });
  return { value: data ?? null, error: error ?? null };
}
