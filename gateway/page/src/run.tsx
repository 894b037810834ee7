/** View of one run: sums, filters, and rollouts as groups or as a list. The view of a farm's run reloads at intervals. */
import { useMemo } from 'react';
import type { PageRun } from '../../src/page/data.ts';
import { get } from './api.ts';
import { Branches } from './branches.tsx';
import { Filters } from './filters.tsx';
import { decimal, duration, integer, percent, short } from './format.ts';
import { Groups } from './groups.tsx';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';
import { Rollouts } from './rollouts.tsx';
import { toRun } from './route.ts';
import { addUpdate, filterOf, passes, type Row, type RunRows, rowsOf } from './rows.ts';
import { causesOf, Progress } from './runs.tsx';

const AGAIN_MS = 2_000;
const AGAIN_WHEN_DONE_MS = 15_000;

function againMs({ run, running, cursor }: RunRows): number {
  if (cursor === 'end') return 0;
  return run.committed >= run.rollouts && running.size === 0 ? AGAIN_WHEN_DONE_MS : AGAIN_MS;
}

type Props = { id: string; tab: 'groups' | 'rollouts'; query: URLSearchParams };

export function Run({ id, tab, query }: Props) {
  const path = `runs/${encodeURIComponent(id)}`;
  const { value, error } = useLoaded<RunRows>(path, againMs, async (known) =>
    addUpdate(known, await get<PageRun>(`${path}?after=${known?.cursor ?? '0'}`)),
  );
  const rows = useMemo(() => (value ? rowsOf(value) : []), [value]);
  const filter = useMemo(() => filterOf(query), [query]);
  const shown = useMemo(() => rows.filter((row) => passes(row, filter)), [rows, filter]);
  if (!value) return <Notice error={error} />;
  return (
    <>
      <Notice error={error} quiet />
      <h1 className="mono">{id}</h1>
      <Summary value={value} rows={rows} />
      <Filters
        rows={rows}
        filter={filter}
        query={query}
        shown={shown.length}
        to={(next) => toRun(id, tab, next)}
      />
      <Branches id={id} />
      <nav aria-label="Form of the list" className="tabs flow">
        <a href={toRun(id, 'groups', query)} aria-current={tab === 'groups' ? 'page' : undefined}>
          Groups
        </a>
        <a href={toRun(id, 'rollouts', query)} aria-current={tab === 'rollouts' ? 'page' : undefined}>
          Rollouts
        </a>
      </nav>
      {tab === 'groups' ? <Groups rows={shown} /> : <Rollouts rows={shown} />}
    </>
  );
}

function Summary({ value: { run }, rows }: { value: RunRows; rows: readonly Row[] }) {
  const sums = useMemo(() => sumsOf(rows), [rows]);
  const facts: [string, string, string?][] = [
    ['done', `${integer(run.committed)} / ${integer(Math.max(run.rollouts, rows.length))}`],
    [
      'resolved',
      percent(run.resolved, run.judged - run.scored),
      `${integer(run.resolved)} of ${integer(run.judged - run.scored)} judged${run.scored > 0 ? `, ${integer(run.scored)} scored` : ''}`,
    ],
    ['failed', integer(run.failed), causesOf(run.failures)],
    ['cancelled', integer(run.cancelled)],
    ['running', integer(sums.running)],
    ['turns', decimal(run.turns_mean), 'mean of judged'],
    ['reward', decimal(run.reward_mean, 3), 'mean'],
    ['tokens', short(sums.tokens)],
    ['rollout takes', duration(sums.median), `slowest ${duration(sums.slowest)}`],
    ['mixed groups', percent(sums.mixed, sums.groups), 'both outcomes'],
  ];
  return (
    <section aria-label="Summary">
      <p>
        {run.dry_run && <strong>dry run: no model sampled these rollouts · </strong>}
        {run.kind} · agent {run.agent || 'unknown'}
        {run.model ? ` · ${run.model}` : ''} · {integer(run.instances)} instances × {run.group_size}
      </p>
      <Progress run={run} />
      <dl className="figures flow">
        {facts.map(([name, figure, note]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {figure}
              {note && (
                <small className="cut" title={note}>
                  {note}
                </small>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function sumsOf(rows: readonly Row[]) {
  const results = rows.flatMap(({ result }) => result ?? []);
  const judged = rows.filter(({ result }) => result?.outcome === 'judged');
  const times = judged.map(({ result }) => result?.seconds ?? 0).sort((a, b) => a - b);
  const groups = [...Map.groupBy(judged, ({ instance }) => instance).values()];
  const has = (group: readonly Row[], resolved: boolean): boolean =>
    group.some(({ state, result }) => result?.resolved !== null && (state === 'resolved') === resolved);
  return {
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
    running: rows.filter(({ state }) => state === 'running').length,
    median: times[Math.floor(times.length / 2)] ?? 0,
    slowest: times.at(-1) ?? 0,
    groups: groups.length,
    mixed: groups.filter((group) => has(group, true) && has(group, false)).length,
  };
}
