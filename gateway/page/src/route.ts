/** The view of the page, stored in the address after `#`. */
import { useSyncExternalStore } from 'react';

export type Route =
  | { view: 'runs' }
  | { view: 'trends' }
  | { view: 'run'; run: string; tab: 'groups' | 'rollouts' }
  | { view: 'rollout'; rollout: string }
  | { view: 'compare'; rollouts: [string, string] };

const subscribe = (changed: () => void): (() => void) => {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
};

export function useRoute(): { route: Route; query: URLSearchParams } {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  const [path = '', query = ''] = hash.slice(1).split('?', 2);
  return { route: parse(path), query: new URLSearchParams(query) };
}

function parse(path: string): Route {
  const [view = '', first = '', second = ''] = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (view === 'run' && first) return { view, run: first, tab: second === 'rollouts' ? second : 'groups' };
  if (view === 'rollout' && first) return { view, rollout: first };
  if (view === 'compare' && first && second) return { view, rollouts: [first, second] };
  return { view: view === 'trends' ? view : 'runs' };
}

const part = encodeURIComponent;
export const toRuns = '#/';
export const toTrends = (query?: URLSearchParams): string =>
  `#/trends${query && query.size > 0 ? `?${query}` : ''}`;
export const toRun = (run: string, tab: 'groups' | 'rollouts' = 'groups', query?: URLSearchParams): string =>
  `#/run/${part(run)}/${tab}${query && query.size > 0 ? `?${query}` : ''}`;
export const toRollout = (rollout: string): string => `#/rollout/${part(rollout)}`;
export const toCompare = (one: string, other: string): string => `#/compare/${part(one)}/${part(other)}`;

/** Changes the address without a new entry in the history. */
export function replaceHash(hash: string): void {
  history.replaceState(null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}
