/** The rollouts of a run as rows, each in one state. */
import type { LiveRollout } from '@swefarm/shared';
import { successOf } from '@swefarm/shared/success';
import type { PageRollout, PageRun } from '../../src/page/data.ts';
import { repoOf } from './format.ts';

/** Signs of the states, in the order of the filters. */
export const SIGNS = {
  resolved: '✓',
  unresolved: '✗',
  scored: '◆',
  ungraded: '○',
  failed: '!',
  cancelled: '–',
  running: '▸',
  waiting: '·',
};
export type State = keyof typeof SIGNS;
export const STATES = Object.keys(SIGNS) as State[];

export type Row = {
  id: string;
  instance: string;
  index: number;
  repo: string;
  state: State;
  result: PageRollout | null;
  live: LiveRollout | null;
};

/** A run with maps of its results and of its running rollouts, by rollout id. */
export type RunRows = Omit<PageRun, 'rollouts' | 'running'> & {
  results: Map<string, PageRollout>;
  running: Map<string, LiveRollout>;
};

/** Adds the rollouts that were committed since the last request, and replaces all other data. */
export function addUpdate(known: RunRows | null, { rollouts, ...update }: PageRun): RunRows {
  const results = new Map(known?.results);
  for (const one of rollouts) {
    results.set(`${update.run.run_id}.${update.instances[one.instance]}.${one.index}`, one);
  }
  const running = new Map(update.running.map((one) => [one.rollout_id, one]));
  return { ...update, results, running };
}

/** Returns a row for each rollout, also a waiting one, in the order of the run's instances and then of the indices. */
export function rowsOf({ run, instances, results, running }: RunRows): Row[] {
  const sizes = new Map<string, number>();
  for (const [id, { index }] of results) {
    const instance = id.slice(run.run_id.length + 1, id.lastIndexOf('.'));
    sizes.set(instance, Math.max(sizes.get(instance) ?? 0, index + 1));
  }
  return instances.flatMap((instance) => {
    const repo = repoOf(instance);
    const size = Math.max(run.group_size, sizes.get(instance) ?? 0);
    return Array.from({ length: size }, (_, index) => {
      const id = `${run.run_id}.${instance}.${index}`;
      const result = results.get(id) ?? null;
      const live = result ? null : (running.get(id) ?? null);
      return { id, instance, index, repo, result, live, state: stateOf(result, live !== null) };
    });
  });
}

export function stateOf(
  result: Pick<PageRollout, 'outcome' | 'resolved' | 'reward' | 'reward_parts'> | null,
  running: boolean,
): State {
  if (!result) return running ? 'running' : 'waiting';
  if (result.outcome === 'failed' || result.outcome === 'cancelled') return result.outcome;
  if (result.resolved === null) return result.reward === null ? 'ungraded' : 'scored';
  return successOf(result) ? 'resolved' : 'unresolved';
}

/** Properties of a row by which the user can filter; the user chooses one value of each. */
export const CHOICES = [
  { name: 'repo', label: 'repository', of: (row: Row) => row.repo },
  { name: 'exit', label: 'exit status', of: (row: Row) => row.result?.exit ?? '' },
  { name: 'failure', label: 'failure', of: (row: Row) => row.result?.failure ?? '' },
];
export type Choice = (typeof CHOICES)[number];

/** Conditions of a filter by their names in the address. */
export type Filter = ReadonlyMap<string, (row: Row) => boolean>;

export const statesOf = (query: URLSearchParams): Set<string> =>
  new Set(
    query
      .get('state')
      ?.split(',')
      .filter((name) => Object.hasOwn(SIGNS, name)),
  );

export function filterOf(query: URLSearchParams): Filter {
  const filter = new Map<string, (row: Row) => boolean>();
  const states = statesOf(query);
  if (states.size > 0) filter.set('state', ({ state }) => states.has(state));
  for (const { name, of } of CHOICES) {
    const value = query.get(name);
    if (value) filter.set(name, (row) => of(row) === value);
  }
  const text = query.get('text')?.toLowerCase() ?? '';
  const textOf = ({ id, result }: Row): string => `${id}\n${result?.reason ?? ''}`.toLowerCase();
  if (text !== '') filter.set('text', (row) => textOf(row).includes(text));
  return filter;
}

/** @param but condition to ignore, so that the page can count the rows for each value of this condition */
export const passes = (row: Row, filter: Filter, but?: string): boolean =>
  filter.entries().every(([name, isMet]) => name === but || isMet(row));
