/** A line chart with axes, a readout of the points under the pointer, and zoom by dragging. */
import { useRef, useState } from 'react';
import {
  CartesianGrid,
  type DotItemDotProps,
  Line,
  LineChart,
  type MouseHandlerDataParam,
  ReferenceArea,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';

export type ChartPoint = {
  x: number;
  /** Null leaves a gap in the line. */
  y: number | null;
  label: string;
};

export type ChartSeries = { name: string; points: readonly ChartPoint[] };
export type Range = readonly [number, number];

type ChartProps = {
  title: string;
  unit: string;
  across: string;
  series: readonly ChartSeries[];
  /** Upper end of the vertical axis; undefined: fitted to the points. */
  most?: number | undefined;
  figure: (value: number) => string;
  tick: (x: number) => string;
  /** The range of the horizontal axis; null: all points. */
  zoom: Range | null;
  setZoom: (zoom: Range) => void;
};

export const LOOKS = ['none', '7 3', '2 3', '9 3 2 3', '4 2', '12 4'].map((strokeDasharray, at) => ({
  stroke: `var(--series-${at})`,
  strokeDasharray,
}));
/** Maximum number of points of a line with a dot at each point. Longer lines have dots only at isolated points. */
const MOST_DOTS = 60;

export function Chart(props: ChartProps) {
  const empty = props.series.every(({ points }) => points.every(({ y }) => y === null));
  return (
    <figure className="chart">
      <figcaption>{props.title}</figcaption>
      {empty ? (
        <p className="notice dim">Nothing to show: no rollout has this figure yet.</p>
      ) : (
        <Plot {...props} />
      )}
    </figure>
  );
}

function Plot({ title, unit, across, series, most, figure, tick, zoom, setZoom }: ChartProps) {
  const { drag, ...handlers } = useDrag(setZoom);
  // If all values are zero, the library draws an axis up to 4, which is 400 % for a share.
  const fitted = series.some(({ points }) => points.some(({ y }) => y)) ? 'auto' : 1;
  return (
    <LineChart
      responsive
      role="img"
      aria-label={`${title}: ${unit} over ${across}`}
      margin={{ top: 10, right: 28, bottom: 0 }}
      {...handlers}
      // Throttled handlers would read the point of an earlier frame.
      throttledEvents={[]}
    >
      <CartesianGrid vertical={false} />
      <XAxis
        dataKey="x"
        type="number"
        domain={zoom ? [...zoom] : ['dataMin', 'dataMax']}
        allowDataOverflow={zoom !== null}
        allowDecimals={false}
        tickCount={3}
        tickFormatter={tick}
        interval="preserveStartEnd"
        height={40}
        label={{ value: across, position: 'insideBottom', className: 'axis' }}
      />
      <YAxis
        width={62}
        domain={[0, most ?? fitted]}
        tickFormatter={figure}
        label={{ value: unit, angle: -90, position: 'insideLeft', textAnchor: 'middle', className: 'axis' }}
      />
      <Tooltip
        isAnimationActive={false}
        content={({ active, label }) => active && <Readout {...{ series, figure }} x={Number(label)} />}
      />
      {series.map(({ name, points }, look) => (
        <Line
          key={name}
          {...LOOKS[look % LOOKS.length]}
          className="series"
          dataKey="y"
          data={points}
          strokeWidth={1.8}
          isAnimationActive={false}
          dot={(dot) => <Dot {...dot} points={points} />}
        />
      ))}
      {drag && <ReferenceArea x1={drag[0]} x2={drag[1]} />}
    </LineChart>
  );
}

function useDrag(onEnd: (range: Range) => void) {
  const [drag, setDrag] = useState<Range | null>(null);
  // A handler may run before the next render, so the handlers read this reference and not the state.
  const from = useRef<number | null>(null);
  const rangeTo = ({ activeLabel }: MouseHandlerDataParam): Range | null => {
    const to = Number(activeLabel ?? from.current);
    return from.current === null || from.current === to ? null : [from.current, to];
  };
  const stop = (): void => {
    from.current = null;
    setDrag(null);
  };
  return {
    drag,
    onMouseDown: ({ activeLabel }: MouseHandlerDataParam): void => {
      from.current = activeLabel === undefined ? null : Number(activeLabel);
    },
    onMouseMove: (state: MouseHandlerDataParam): void => setDrag(rangeTo(state)),
    onMouseUp: (state: MouseHandlerDataParam): void => {
      const range = rangeTo(state);
      if (range) onEnd(range[0] < range[1] ? range : [range[1], range[0]]);
      stop();
    },
    onMouseLeave: stop,
  };
}

function Dot({
  cx,
  cy,
  index,
  stroke,
  points,
}: Omit<DotItemDotProps, 'points'> & Pick<ChartSeries, 'points'>) {
  const has = (at: number): boolean => (points[at]?.y ?? null) !== null;
  const lonely = !has(index - 1) && !has(index + 1);
  return has(index) && (lonely || points.length <= MOST_DOTS) ? (
    <circle cx={cx} cy={cy} r={3} fill={stroke} />
  ) : null;
}

/** Shows the point of each series that is nearest to `x`. */
function Readout({ series, figure, x }: Pick<ChartProps, 'series' | 'figure'> & { x: number }) {
  return (
    <div className="readout">
      {series.map(({ name, points }) => {
        const [first, ...rest] = points;
        if (!first) return null;
        const near = rest.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a), first);
        const prefix = series.length > 1 ? `${name}, ` : '';
        return (
          <p key={name}>{`${prefix}${near.label}: ${near.y === null ? 'no figure' : figure(near.y)}`}</p>
        );
      })}
    </div>
  );
}
