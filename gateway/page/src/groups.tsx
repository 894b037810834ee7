/** Groups as a grid: a line for each instance, a square for each rollout. */
import { type Tally, tally } from '@swefarm/trajectories/tally';
import { useMemo } from 'react';
import { decimal } from './format.ts';
import { Grid, type Position } from './grid.tsx';
import { toRollout } from './route.ts';
import { type Row, SIGNS } from './rows.ts';

type Group = { instance: string; rows: Row[]; sums: Tally };

export function Groups({ rows }: { rows: readonly Row[] }) {
  const groups = useMemo(() => groupsOf(rows), [rows]);
  return (
    <Grid
      label="Groups"
      className="groups"
      rows={groups}
      rowPx={26}
      cellsOf={(group) => group.rows.length}
      keyOf={({ instance }) => instance}
      line={(group, position) => <Line group={group} {...position} />}
    />
  );
}

function Line({ group, at, top, focus, onFocus }: { group: Group } & Position) {
  const { judged, resolved, scored, turns_sum } = group.sums;
  const mixed = resolved > 0 && resolved < judged - scored;
  return (
    <div role="row" className="line" aria-rowindex={at + 1} style={{ transform: `translateY(${top}px)` }}>
      <span role="rowheader" className="mono cut" title={group.instance}>
        {group.instance}
      </span>
      <span className="cells" role="presentation">
        {group.rows.map((row, column) => (
          <span role="gridcell" key={row.id}>
            <a
              href={toRollout(row.id)}
              data-cell={`${at}.${column}`}
              tabIndex={focus === column ? 0 : -1}
              onFocus={() => onFocus(column)}
              className={`square ${row.state}`}
              aria-label={`${row.instance} ${row.index}: ${describe(row)}`}
              title={`#${row.index}: ${describe(row)}`}
            >
              {SIGNS[row.state]}
            </a>
          </span>
        ))}
      </span>
      <span role="gridcell" className="right">
        <b>{mixed ? <abbr title="both outcomes">{resolved}</abbr> : resolved}</b>
        <span className="dim"> / {judged - scored}</span>
      </span>
      <span role="gridcell" className="right dim">
        {judged > 0 ? `${decimal(turns_sum / judged)} turns` : ''}
      </span>
    </div>
  );
}

function describe({ state, result, live }: Row): string {
  if (live) return `running, ${live.stage}, ${live.turns} turns, on ${live.node}`;
  if (!result) return state;
  if (result.failure) return `${state}, ${result.failure}`;
  const reward = result.reward === null ? 'no reward' : `reward ${result.reward}`;
  return `${state}, ${reward}, ${result.turns} turns${result.forged ? ', forged' : ''}`;
}

const groupsOf = (rows: readonly Row[]): Group[] =>
  Map.groupBy(rows, (row) => row.instance)
    .entries()
    .map(([instance, own]) => ({
      instance,
      rows: own,
      sums: tally(own.flatMap(({ result }) => result ?? [])),
    }))
    .toArray();
