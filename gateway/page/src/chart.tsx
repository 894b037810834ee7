/** A line chart with axes, units and a readout; as many points as the server sends. */
import { type PointerEvent, useState } from 'react';
import { ticksOf } from './ticks.ts';

export type ChartPoint = {
  x: number;
  /** Null: there is nothing to take the figure of; the line has a gap. */
  y: number | null;
  /** What the readout says before the figure. */
  label: string;
};

export type ChartSeries = { name: string; points: readonly ChartPoint[] };

type ChartProps = {
  title: string;
  /** What the vertical axis counts, with its unit. */
  unit: string;
  /** What the horizontal axis counts. */
  across: string;
  series: readonly ChartSeries[];
  /** The highest figure there can be; null: as high as the figures. */
  most: number | null;
  figure: (value: number) => string;
  place: (x: number) => string;
};

const WIDTH = 460;
const HEIGHT = 210;
const EDGE = { left: 58, right: 14, top: 10, bottom: 44 };
const INNER = { width: WIDTH - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
/** With more points than this, points are a line alone. */
const MOST_DOTS = 60;
/** Series look different up to this many. */
export const LOOKS = 6;

export function Chart(props: ChartProps) {
  const { title, unit, across, series, figure } = props;
  const [at, setAt] = useState<number | null>(null);
  const known = series.flatMap(({ points }) => points.filter(({ y }) => y !== null));
  if (known.length === 0) {
    return (
      <figure className="chart">
        <figcaption>{title}</figcaption>
        <p className="empty">Nothing to show: no rollout has this figure yet.</p>
      </figure>
    );
  }
  const scales = scalesOf(series, props.most);
  const { toX, toY } = scales;
  const nearest = series.map(({ points }) => (at === null ? null : nearestOf(points, at)));
  const follow = (event: PointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const inside = ((event.clientX - box.left) / box.width) * WIDTH;
    setAt(toX.back(inside));
  };
  return (
    <figure className="chart">
      <figcaption>{title}</figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${title}: ${unit} over ${across}`}
        onPointerMove={follow}
        onPointerLeave={() => setAt(null)}
      >
        <Axes scales={scales} {...props} />
        {series.map(({ name, points }, look) => (
          <g key={name} className={`series s${look % LOOKS}`}>
            <path d={pathOf(points, toX.of, toY)} />
            {dotsOf(points, nearest[look] ?? null).map(({ x, y }) => (
              <circle key={x} cx={toX.of(x)} cy={toY(y ?? 0)} r={3} />
            ))}
          </g>
        ))}
      </svg>
      <output className="dim">{readout(series, nearest, figure)}</output>
    </figure>
  );
}

type AxesProps = Pick<ChartProps, 'unit' | 'across' | 'figure' | 'place'> & {
  scales: ReturnType<typeof scalesOf>;
};

function Axes({ unit, across, figure, place, scales: { toX, toY, xTicks, yTicks } }: AxesProps) {
  return (
    <>
      {yTicks.map((y) => (
        <g key={y}>
          <line className="grid" x1={EDGE.left} x2={WIDTH - EDGE.right} y1={toY(y)} y2={toY(y)} />
          <text x={EDGE.left - 6} y={toY(y) + 4} textAnchor="end">
            {figure(y)}
          </text>
        </g>
      ))}
      {xTicks.map((x, position) => (
        <text
          key={x}
          x={toX.of(x)}
          y={HEIGHT - EDGE.bottom + 16}
          textAnchor={anchorOf(position, xTicks.length)}
        >
          {place(x)}
        </text>
      ))}
      <text className="axis" x={EDGE.left + INNER.width / 2} y={HEIGHT - 6} textAnchor="middle">
        {across}
      </text>
      <text
        className="axis"
        textAnchor="middle"
        transform={`translate(11 ${EDGE.top + INNER.height / 2}) rotate(-90)`}
      >
        {unit}
      </text>
    </>
  );
}

function readout(
  series: readonly ChartSeries[],
  nearest: readonly (ChartPoint | null)[],
  figure: (value: number) => string,
): string {
  return series
    .flatMap(({ name }, at) => {
      const point = nearest[at];
      if (!point) return [];
      const said = `${point.label}: ${point.y === null ? 'no figure' : figure(point.y)}`;
      return series.length > 1 ? `${name}, ${said}` : said;
    })
    .join(' · ');
}

const anchorOf = (position: number, count: number): 'start' | 'middle' | 'end' => {
  if (count === 1) return 'middle';
  if (position === 0) return 'start';
  return position === count - 1 ? 'end' : 'middle';
};

function scalesOf(series: readonly ChartSeries[], most: number | null) {
  const points = series.flatMap((one) => one.points);
  const xs = points.map(({ x }) => x);
  const least = xs.reduce((a, b) => Math.min(a, b), Infinity);
  const last = xs.reduce((a, b) => Math.max(a, b), -Infinity);
  const highest = points.reduce((high, { y }) => Math.max(high, y ?? 0), 0);
  const lowest = points.reduce((low, { y }) => Math.min(low, y ?? 0), 0);
  const yTicks = ticksOf(lowest, most ?? highest);
  const [bottom = 0, top = 1] = [yTicks[0], yTicks.at(-1)];
  const span = last - least;
  const toX = {
    // One point stands in the middle.
    of: (x: number): number => EDGE.left + INNER.width * (span === 0 ? 0.5 : (x - least) / span),
    back: (inside: number): number => least + (span * (inside - EDGE.left)) / INNER.width,
  };
  const toY = (y: number): number => EDGE.top + INNER.height * (1 - (y - bottom) / (top - bottom));
  // Versions have whole places.
  const xTicks = span === 0 ? [least] : [...new Set([least, Math.floor(least + span / 2), last])];
  return { toX, toY, xTicks, yTicks };
}

/** A line through the points; it breaks where there is no figure. */
function pathOf(
  points: readonly ChartPoint[],
  toX: (x: number) => number,
  toY: (y: number) => number,
): string {
  let pen = false;
  let path = '';
  for (const { x, y } of points) {
    if (y !== null) path += `${pen ? 'L' : 'M'}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`;
    pen = y !== null;
  }
  return path;
}

/** All points where there are few; otherwise those that no line reaches, and the one that is read out. */
function dotsOf(points: readonly ChartPoint[], chosen: ChartPoint | null): ChartPoint[] {
  const lonely = ({ y }: ChartPoint, at: number): boolean =>
    y !== null && (points[at - 1]?.y ?? null) === null && (points[at + 1]?.y ?? null) === null;
  return points.filter(
    (point, at) => point.y !== null && (points.length <= MOST_DOTS || point === chosen || lonely(point, at)),
  );
}

function nearestOf(points: readonly ChartPoint[], x: number): ChartPoint | null {
  return points.reduce<ChartPoint | null>(
    (best, point) => (best === null || Math.abs(point.x - x) < Math.abs(best.x - x) ? point : best),
    null,
  );
}
