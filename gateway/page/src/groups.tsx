/** Groups as a grid: a line for each instance, a square for each rollout. */
import { type Tally, tally } from '@swefarm/trajectories/tally';
import { useMemo } from 'react';
import { decimal } from './format.ts';
import { type Cell, useGrid } from './grid.ts';
import { toRollout } from './route.ts';
import { type Row, SIGNS } from './rows.ts';

type Group = { instance: string; rows: Row[]; sums: Tally };

const ROW_PX = 26;

export function Groups({ rows }: { rows: readonly Row[] }) {
  const groups = useMemo(() => groupsOf(rows), [rows]);
  const columns = (row: number): number => groups[row]?.rows.length ?? 0;
  const { cell, setCell, onKeyDown, scroller, virtual } = useGrid({ rows: groups.length, columns }, ROW_PX);
  if (groups.length === 0) return <p className="empty">Nothing passes the filter.</p>;
  return (
    <div className="list groups" ref={scroller}>
      <div
        role="grid"
        aria-label="Groups"
        aria-rowcount={groups.length}
        onKeyDown={onKeyDown}
        style={{ height: virtual.getTotalSize() }}
        tabIndex={-1}
      >
        {virtual.getVirtualItems().map(({ index, start }) => {
          const group = groups[index];
          return (
            group && (
              <Line
                key={group.instance}
                group={group}
                at={index}
                top={start}
                focus={cell}
                onFocus={setCell}
              />
            )
          );
        })}
      </div>
    </div>
  );
}

type LineProps = {
  group: Group;
  at: number;
  top: number;
  focus: Cell;
  onFocus: (cell: Cell) => void;
};

function Line({ group, at, top, focus, onFocus }: LineProps) {
  const { judged, resolved, scored, turns_sum } = group.sums;
  const mixed = resolved > 0 && resolved < judged - scored;
  return (
    <div role="row" className="line" aria-rowindex={at + 1} style={{ transform: `translateY(${top}px)` }}>
      <span role="rowheader" className="mono cut" title={group.instance} tabIndex={-1}>
        {group.instance}
      </span>
      <span className="cells" role="presentation">
        {group.rows.map((row, column) => (
          <span role="gridcell" key={row.id}>
            <a
              href={toRollout(row.id)}
              data-cell={`${at}.${column}`}
              tabIndex={focus.row === at && focus.column === column ? 0 : -1}
              onFocus={() => onFocus({ row: at, column })}
              className={`square ${row.state}`}
              aria-label={`${row.instance} ${row.index}: ${describe(row)}`}
              title={`#${row.index}: ${describe(row)}`}
            >
              {SIGNS[row.state]}
            </a>
          </span>
        ))}
      </span>
      <span role="gridcell" className="right" tabIndex={-1}>
        <b className={mixed ? 'mixed' : ''}>{resolved}</b>
        <span className="dim"> / {judged - scored}</span>
      </span>
      <span role="gridcell" className="right dim" tabIndex={-1}>
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

function groupsOf(rows: readonly Row[]): Group[] {
  const groups = Map.groupBy(rows, (row) => row.instance);
  return [...groups].map(([instance, own]) => ({
    instance,
    rows: own,
    sums: tally(own.flatMap(({ result }) => result ?? [])),
  }));
}
