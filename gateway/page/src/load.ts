/** Loads what a view shows from the server, and loads it again while the view is open. */
import useSWR, { type SWRConfiguration, useSWRConfig } from 'swr';
import { get } from './api.ts';

const AFTER_ERROR_MS = 3_000;

/** Settings of the cache of one view. While the server does not answer, the last value stays, with the error beside it. */
export const LOADING: SWRConfiguration = {
  provider: () => new Map(),
  keepPreviousData: true,
  compare: Object.is,
  dedupingInterval: 0,
  revalidateOnFocus: false,
  // A browser without a network still reaches a gateway on the loopback.
  refreshWhenOffline: true,
  onErrorRetry: (_error, _key, _config, revalidate, options) =>
    void setTimeout(revalidate, AFTER_ERROR_MS, options),
};

export type Loaded<T> = { value: T | null; error: Error | null };

/**
 * Loads the value of `path` (null: not yet), and loads it again after the milliseconds that `againMs` returns (0: no more).
 *
 * @param load makes the value from the previous one; by default the answer to a GET of `path`
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
