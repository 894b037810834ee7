/** The view of the page, stored in the address after `#`, and names of runs and rollouts. */
import { useSyncExternalStore } from 'react';

/** `rollouts`: the shown rollout, or the two rollouts that are compared. `run`: the shown run, or the run of the first rollout. */
export type Route = {
  view: 'runs' | 'trends' | 'run' | 'rollout' | 'compare';
  run: string;
  rollouts: string[];
  tab: 'groups' | 'rollouts';
};

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
  const route: Route = {
    view: 'runs',
    run: '',
    rollouts: [],
    tab: second === 'rollouts' ? second : 'groups',
  };
  const run = first.slice(0, first.indexOf('.'));
  if (view === 'trends') return { ...route, view };
  if (view === 'run' && first) return { ...route, view, run: first };
  if (view === 'rollout' && first) return { ...route, view, run, rollouts: [first] };
  if (view === 'compare' && first && second) return { ...route, view, run, rollouts: [first, second] };
  return route;
}

const part = encodeURIComponent;
const after = (query?: URLSearchParams): string => (query && query.size > 0 ? `?${query}` : '');
export const toRuns = '#/';
export const toTrends = (query?: URLSearchParams): string => `#/trends${after(query)}`;
export const toRun = (run: string, tab: Route['tab'] = 'groups', query?: URLSearchParams): string =>
  `#/run/${part(run)}/${tab}${after(query)}`;
export const toRollout = (rollout: string): string => `#/rollout/${part(rollout)}`;
export const toCompare = (one: string, other: string): string => `#/compare/${part(one)}/${part(other)}`;

/** Returns `instance #index` for the rollout id `run.instance.index`. */
export const nameOf = (rollout: string): string => rollout.replace(/^[^.]*\.(.*)\.(.*)$/, '$1 #$2');

/** Changes the address without a new entry in the history. */
export function replaceHash(hash: string): void {
  history.replaceState(null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

/** Returns the query with another value of one parameter; an empty value removes the parameter. */
export function withValue(query: URLSearchParams, name: string, value: string): URLSearchParams {
  const next = new URLSearchParams(query);
  if (value === '') next.delete(name);
  else next.set(name, value);
  return next;
}
