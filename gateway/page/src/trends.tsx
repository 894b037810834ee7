/** View of results over policy versions and over time, with a comparison of runs. */
import { useState } from 'react';
import type { PageTrends } from '../../src/page/data.ts';
import { Chart, type ChartSeries, LOOKS, type Range } from './chart.tsx';
import { decimal, duration, integer, moment, short } from './format.ts';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';
import { replaceHash, toRun, toTrends, withValue } from './route.ts';
import { Table } from './table.tsx';

const AGAIN_MS = 10_000;

type Series = PageTrends['series'][number];
type Point = Series['all'];
const BY = ['version', 'time'] as const;
type By = (typeof BY)[number];

/** Changes one choice of the user, which the address stores. */
const choose = (query: URLSearchParams, name: string, value: string): void =>
  replaceHash(toTrends(withValue(query, name, value)));

export function Trends({ query }: { query: URLSearchParams }) {
  const chosen = query.get('runs')?.split(',') ?? null;
  const each = query.get('each') === 'true';
  // The number of lines is limited, because each line needs a distinct colour and dash pattern.
  const requested = each ? chosen?.slice(0, LOOKS.length) : chosen;
  const runs = requested ? `&runs=${requested.map(encodeURIComponent).join(',')}` : '';
  const { value, error } = useLoaded<PageTrends>(`trends?each=${each}${runs}`, () => AGAIN_MS);
  if (!value) return <Notice error={error} />;
  const series = each ? value.series.slice(-LOOKS.length) : value.series;
  const usual = series.some(({ versions }) => versions.length > 1) ? 'version' : 'time';
  const by = BY.find((one) => one === query.get('by')) ?? usual;
  return (
    <>
      <Notice error={error} quiet />
      <h1>Trends</h1>
      <Controls {...{ query, chosen, each, by }} runs={value.runs} />
      {series.every(({ all }) => all.rollouts === 0) ? (
        <p className="notice dim">
          {value.runs.length === 0
            ? 'No runs yet. swefarm submit makes one.'
            : 'No rollout of these runs has ended yet.'}
        </p>
      ) : (
        <>
          <Charts key={`${query}`} series={series} by={by} each={each} />
          <SideBySide series={series} />
        </>
      )}
    </>
  );
}

type ControlsProps = {
  query: URLSearchParams;
  chosen: readonly string[] | null;
  each: boolean;
  by: By;
  runs: PageTrends['runs'];
};

function Controls({ query, chosen, each, by, runs }: ControlsProps) {
  const toggle = (id: string): void => {
    const now = chosen ?? [];
    const next = now.includes(id) ? now.filter((one) => one !== id) : [...now, id];
    choose(query, 'runs', next.join(','));
  };
  return (
    <>
      <p className="filters">
        <label>
          Over{' '}
          <select value={by} onChange={(event) => choose(query, 'by', event.target.value)}>
            <option value="version">policy versions</option>
            <option value="time">time</option>
          </select>
        </label>
        <button type="button" aria-pressed={each} onClick={() => choose(query, 'each', each ? '' : 'true')}>
          A line for each run
        </button>
        <output className="dim">
          {chosen === null ? `the newest of ${runs.length} runs` : `${chosen.length} chosen runs`}
          {each ? `, at most ${LOOKS.length} lines` : ', as one'}
        </output>
        {chosen !== null && (
          <button type="button" className="quiet" onClick={() => choose(query, 'runs', '')}>
            The newest runs
          </button>
        )}
      </p>
      <details className="choice">
        <summary>Choose runs</summary>
        <ul>
          {runs.map(({ run_id: id, created_at, model }) => (
            <li key={id}>
              <label>
                <input type="checkbox" checked={chosen?.includes(id) ?? false} onChange={() => toggle(id)} />{' '}
                <span className="mono">{id}</span>{' '}
                <span className="dim">
                  {moment(created_at)} {model}
                </span>
              </label>
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

type Figure = {
  title: string;
  unit: string;
  of: (point: Point) => number | null;
  most?: number;
  figure: (value: number) => string;
};

const share = (value: number): string => `${Number((100 * value).toFixed(1))} %`;
const hundredths = (value: number): string => decimal(value, 2);
const tenths = (value: number): string => String(Number(value.toFixed(1)));
const rounded = (value: number): string => short(Math.round(value));
const FIGURES: readonly Figure[] = [
  { title: 'Resolve rate', unit: '% of judged', of: (one) => one.resolve_rate, most: 1, figure: share },
  { title: 'Mean reward', unit: 'reward', of: (one) => one.reward_mean, figure: hundredths },
  { title: 'Mean turns', unit: 'turns of judged', of: (one) => one.turns_mean, figure: tenths },
  { title: 'Mean tokens', unit: 'tokens of judged', of: (one) => one.tokens_mean, figure: rounded },
  { title: 'Failures', unit: '% of rollouts', of: (one) => one.failure_rate, figure: share },
];

const nameOf = ({ run_id }: Series): string => run_id ?? 'all chosen runs';
const versionOf = ({ version, until }: Point): string => {
  const first = version === '' || version === null ? 'no version' : version;
  return until === null ? first : `${first} to ${until}`;
};

function Charts({ series, by, each }: { series: readonly Series[]; by: By; each: boolean }) {
  const [zoom, setZoom] = useState<Range | null>(null);
  const first = series[0]?.versions ?? [];
  const versionAt = (x: number): string => {
    const point = first[Math.round(x)];
    if (each || !point) return `#${Math.round(x) + 1}`;
    const text = versionOf({ ...point, until: null });
    return text.length > 14 ? `${text.slice(0, 13)}…` : text;
  };
  const timeAt = (x: number): string => (each ? duration(x / 1000) : moment(x));
  const across = by === 'version' ? 'policy version' : each ? 'time since the first result' : 'time';
  return (
    <>
      <p className="hint dim">
        {zoom ? (
          <button type="button" onClick={() => setZoom(null)}>
            Show the whole range
          </button>
        ) : (
          'Drag over a chart to zoom in.'
        )}
      </p>
      <div className="charts">
        {FIGURES.map(({ of, ...figure }) => (
          <Chart
            key={figure.title}
            {...figure}
            {...{ across, zoom, setZoom }}
            tick={by === 'version' ? versionAt : timeAt}
            series={series.map(
              (one): ChartSeries => ({
                name: nameOf(one),
                points: (by === 'version' ? one.versions : one.times).map((point, at) => ({
                  // Over time, if each run has its own line, all lines begin at 0.
                  x: by === 'version' ? at : point.from - (each ? one.all.from : 0),
                  y: of(point),
                  label: `${by === 'version' ? versionOf(point) : moment(point.from)}, ${integer(point.rollouts)} rollouts`,
                })),
              }),
            )}
          />
        ))}
      </div>
    </>
  );
}

type Row = [string, (one: Series) => string];

function SideBySide({ series }: { series: readonly Series[] }) {
  const rows: Row[] = [
    ['Rollouts', ({ all }) => integer(all.rollouts)],
    ['Judged', ({ all }) => integer(all.judged)],
    ...FIGURES.map(
      ({ title, of, figure }): Row => [
        title,
        ({ all }) => {
          const value = of(all);
          return value === null ? '–' : figure(value);
        },
      ],
    ),
    ['Versions', ({ versions }) => versionsOf(versions)],
    ['First result', ({ all }) => moment(all.from)],
    ['Last result', ({ all }) => moment(all.to)],
  ];
  const columns = series.flatMap((one, at) => {
    if (one.all.rollouts === 0) return [];
    const name = (
      <>
        {series.length > 1 && <Sign look={at} />}{' '}
        {one.run_id === null ? (
          nameOf(one)
        ) : (
          <a className="mono" href={toRun(one.run_id)}>
            {one.run_id}
          </a>
        )}
      </>
    );
    return [{ name, className: 'right', of: (row: Row) => row[1](one) }];
  });
  const figure = { name: <span className="visually-hidden">Figure</span>, of: ([name]: Row) => name };
  return (
    <section aria-labelledby="beside">
      <h2 id="beside">{series.length > 1 ? 'Runs side by side' : 'All of it'}</h2>
      <Table columns={[figure, ...columns]} rows={rows} keyOf={([name]) => name} />
    </section>
  );
}

function versionsOf(versions: readonly Point[]): string {
  const [first, last] = [versions[0], versions.at(-1)];
  if (!first || !last) return '–';
  if (versions.length === 1) return versionOf(first);
  return `${versionOf({ ...first, until: null })} to ${last.until ?? versionOf(last)}`;
}

/** Shows a piece of the run's line in the charts, as a legend. */
const Sign = ({ look }: { look: number }) => (
  <svg width={26} height={8} viewBox="0 0 26 8" aria-hidden="true">
    <path d="M0 4L26 4" strokeWidth={1.8} {...LOOKS[look % LOOKS.length]} />
  </svg>
);
