/** The runs of a farm or of a result file, and the workers of the farm. */
import type { PageOverview } from '../../src/page/data.ts';
import { decimal, integer, moment, percent, words } from './format.ts';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';
import { toRun, toTrends } from './route.ts';
import { type Column, Table } from './table.tsx';

const AGAIN_MS = 3_000;

export function Runs() {
  const { value, error } = useLoaded<PageOverview>('overview', ({ kind }) =>
    kind === 'farm' ? AGAIN_MS : 0,
  );
  if (!value) return <Notice error={error} />;
  const { queue, runs, workers } = value;
  return (
    <>
      <Notice error={error} quiet />
      <h1>Runs</h1>
      <p>
        <span className="mono">{value.name}</span>
        {queue && (
          <>
            {' · '}
            <b>{integer((queue.prioritized ?? 0) + (queue.waiting ?? 0))}</b> wait,{' '}
            <b>{integer(queue.active ?? 0)}</b> run, <b>{integer(queue.delayed ?? 0)}</b> wait for another
            attempt
          </>
        )}
      </p>
      {runs.length > 0 ? (
        <>
          <p>
            <a href={toTrends()}>Trends over versions and time</a>
          </p>
          <Table columns={RUN_COLUMNS} rows={runs} keyOf={(run) => run.run_id} />
        </>
      ) : (
        <p className="notice dim">No runs yet. swefarm submit makes one.</p>
      )}
      {value.kind === 'farm' && (
        <section aria-labelledby="workers">
          <h2 id="workers">Workers</h2>
          {workers.length === 0 ? (
            <p className="notice bad">No worker is alive: nothing runs.</p>
          ) : (
            <Table columns={WORKER_COLUMNS} rows={workers} keyOf={(one) => one.worker} />
          )}
        </section>
      )}
    </>
  );
}

type Run = PageOverview['runs'][number];

const RUN_COLUMNS: readonly Column<Run>[] = [
  {
    name: 'Run',
    of: ({ run_id }) => (
      <a className="mono" href={toRun(run_id)}>
        {run_id}
      </a>
    ),
  },
  { name: 'Created', of: (run) => moment(run.created_at) },
  { name: 'Kind', of: (run) => run.kind },
  { name: 'Agent', of: (run) => run.agent },
  { name: 'Model', className: 'cut', of: (run) => run.model ?? '–' },
  { name: 'Done', className: 'right', of: (run) => `${integer(run.committed)} / ${integer(run.rollouts)}` },
  { name: <span className="visually-hidden">Progress</span>, of: (run) => <Progress run={run} /> },
  {
    name: 'Resolved',
    className: 'right',
    of: ({ resolved, judged, scored }) => (
      <>
        {integer(resolved)} <span className="dim">{percent(resolved, judged - scored)}</span>
      </>
    ),
  },
  {
    name: 'Failed',
    className: 'right',
    of: ({ failed }) => <span className={failed > 0 ? 'bad' : 'dim'}>{integer(failed)}</span>,
  },
  { name: 'Turns', className: 'right', of: (run) => decimal(run.turns_mean) },
  { name: 'Reward', className: 'right', of: (run) => decimal(run.reward_mean, 2) },
  { name: 'Failures', className: 'cut dim', of: (run) => causesOf(run.failures) },
];

const WORKER_COLUMNS: readonly Column<PageOverview['workers'][number]>[] = [
  { name: 'Worker', className: 'mono', of: (one) => one.worker },
  { name: 'Node', of: (one) => one.node },
  { name: 'Runtime', of: (one) => one.runtime },
  { name: 'Busy', className: 'right', of: (one) => `${one.active} / ${one.slots}` },
  { name: 'Since', of: (one) => moment(one.started_at) },
  {
    name: 'State',
    of: ({ paused }) => (paused ? <span className="bad">paused: {paused}</span> : 'claiming'),
  },
];

/** Renders the number of failures of each class, the most frequent class first. */
export const causesOf = (failures: Record<string, number>): string =>
  Object.entries(failures)
    .sort(([, a], [, b]) => b - a)
    .map(([cause, times]) => `${words(cause)} ${times}`)
    .join(', ');

/** Shows the outcomes of a run as parts of one bar. */
export function Progress({ run }: { run: Run }) {
  const parts = {
    resolved: run.resolved,
    unresolved: run.judged - run.scored - run.resolved,
    scored: run.scored,
    failed: run.failed,
    cancelled: run.cancelled,
  };
  return (
    <div className="progress" aria-hidden="true">
      {Object.entries(parts).map(([state, count]) => (
        <i key={state} className={state} style={{ width: `${(100 * count) / Math.max(1, run.rollouts)}%` }} />
      ))}
    </div>
  );
}
