/** The farm at a glance: its runs and its workers. */
import type { PageOverview } from '../../src/page/data.ts';
import { api } from './api.ts';
import { decimal, integer, moment, percent, words } from './format.ts';
import { useFollowed } from './load.ts';
import { Notice } from './notice.tsx';
import { toRun, toTrends } from './route.ts';

const AGAIN_MS = 3_000;

export function Runs() {
  const { value, error } = useFollowed<PageOverview>('overview', async (_previous, signal) => {
    const overview = await api.overview(signal);
    return { value: overview, againMs: overview.kind === 'farm' ? AGAIN_MS : null };
  });
  if (!value) return <Notice error={error} />;
  const { queue } = value;
  return (
    <>
      <Notice error={error} quiet />
      <h1>Runs</h1>
      <p className="facts">
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
      {value.runs.length > 0 && (
        <p>
          <a href={toTrends()}>Trends over versions and time</a>
        </p>
      )}
      <RunTable runs={value.runs} />
      {value.kind === 'farm' && <Workers workers={value.workers} />}
    </>
  );
}

const COLUMNS: readonly { name: string; right?: boolean; hidden?: boolean }[] = [
  { name: 'Run' },
  { name: 'Created' },
  { name: 'Kind' },
  { name: 'Agent' },
  { name: 'Model' },
  { name: 'Done', right: true },
  { name: 'Progress', hidden: true },
  { name: 'Resolved', right: true },
  { name: 'Failed', right: true },
  { name: 'Turns', right: true },
  { name: 'Reward', right: true },
  { name: 'Failures' },
];

function RunTable({ runs }: { runs: PageOverview['runs'] }) {
  if (runs.length === 0) return <p className="empty">No runs yet. swefarm submit makes one.</p>;
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            {COLUMNS.map(({ name, right, hidden }) => (
              <th scope="col" key={name} className={right ? 'right' : undefined}>
                {hidden ? <span className="visually-hidden">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow key={run.run_id} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({ run }: { run: PageOverview['runs'][number] }) {
  return (
    <tr>
      <th scope="row">
        <a className="mono" href={toRun(run.run_id)}>
          {run.run_id}
        </a>
      </th>
      <td>{moment(run.created_at)}</td>
      <td>{run.kind}</td>
      <td>{run.agent}</td>
      <td className="cut">{run.model ?? '–'}</td>
      <td className="right">
        {integer(run.committed)} / {integer(run.rollouts)}
      </td>
      <td>
        <Progress run={run} />
      </td>
      <td className="right">
        {integer(run.resolved)} <span className="dim">{percent(run.resolved, run.judged - run.scored)}</span>
      </td>
      <td className={run.failed > 0 ? 'right bad' : 'right dim'}>{integer(run.failed)}</td>
      <td className="right">{decimal(run.turns_mean)}</td>
      <td className="right">{decimal(run.reward_mean, 2)}</td>
      <td className="cut dim">
        {Object.entries(run.failures)
          .sort(([, a], [, b]) => b - a)
          .map(([cause, times]) => `${words(cause)} ${times}`)
          .join(', ')}
      </td>
    </tr>
  );
}

/** The outcomes of a run as parts of one bar; the numbers stand beside it. */
export function Progress({ run }: { run: PageOverview['runs'][number] }) {
  const parts = [
    ['resolved', run.resolved],
    ['unresolved', run.judged - run.scored - run.resolved],
    ['scored', run.scored],
    ['failed', run.failed],
    ['cancelled', run.cancelled],
  ] as const;
  return (
    <div className="progress" aria-hidden="true">
      {parts.map(([state, count]) =>
        count > 0 ? (
          <i
            key={state}
            className={state}
            style={{ width: `${(100 * count) / Math.max(1, run.rollouts)}%` }}
          />
        ) : null,
      )}
    </div>
  );
}

function Workers({ workers }: { workers: PageOverview['workers'] }) {
  return (
    <section aria-labelledby="workers">
      <h2 id="workers">Workers</h2>
      {workers.length === 0 ? (
        <p className="empty bad">No worker is alive: nothing runs.</p>
      ) : (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Worker</th>
                <th scope="col">Node</th>
                <th scope="col">Runtime</th>
                <th scope="col" className="right">
                  Busy
                </th>
                <th scope="col">Since</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {workers.map((one) => (
                <tr key={one.worker}>
                  <th scope="row" className="mono">
                    {one.worker}
                  </th>
                  <td>{one.node}</td>
                  <td>{one.runtime}</td>
                  <td className="right">
                    {one.active} / {one.slots}
                  </td>
                  <td>{moment(one.started_at)}</td>
                  <td className={one.paused ? 'bad' : ''}>
                    {one.paused ? `paused: ${one.paused}` : 'claiming'}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
