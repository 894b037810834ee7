/** Rollouts as a sortable list that draws only visible rows. The user can compare two rollouts. */
import { type KeyboardEvent, type ReactNode, useMemo, useState } from 'react';
import { decimal, duration, moment, short, words } from './format.ts';
import { Grid, type Position } from './grid.tsx';
import { Mark } from './mark.tsx';
import { toCompare, toRollout } from './route.ts';
import { type Row, STATES } from './rows.ts';

/** `of`: the value by which rows are sorted. The cell shows `cell` if present, otherwise the value, rendered by `show` if present. */
type Column = {
  name: string;
  right?: boolean;
  of: (row: Row) => number | string | null | undefined;
  show?: (value: number) => string;
  cell?: (row: Row) => ReactNode;
};

const COLUMNS: readonly Column[] = [
  { name: 'Outcome', of: (row) => STATES.indexOf(row.state), cell: (row) => <Mark state={row.state} /> },
  { name: 'Instance', of: (row) => row.instance, cell: (row) => <Name row={row} /> },
  { name: '#', right: true, of: (row) => row.index },
  { name: 'Reward', right: true, of: (row) => row.result?.reward, show: decimal },
  { name: 'Turns', right: true, of: (row) => row.result?.turns ?? row.live?.turns },
  { name: 'Tokens', right: true, of: (row) => row.result?.tokens, show: short },
  { name: 'Time', right: true, of: secondsOf, show: duration },
  { name: 'Exit or failure', of: endOf, cell: (row) => <End row={row} /> },
  { name: 'Node', of: (row) => row.result?.node ?? row.live?.node ?? '' },
  { name: 'Att.', right: true, of: (row) => row.result?.attempt ?? row.live?.attempt },
  { name: 'Ended', right: true, of: (row) => row.result?.finished_at, show: moment },
];

function secondsOf({ result, live }: Row): number | undefined {
  return live ? (Date.now() - live.claimed_at) / 1000 : result?.seconds;
}

function endOf({ result, live }: Row): string {
  return result?.failure ?? result?.exit ?? live?.stage ?? '';
}

function cellOf({ of, show, cell }: Column, row: Row): ReactNode {
  if (cell) return cell(row);
  const value = of(row);
  return show && typeof value === 'number' ? show(value) : value;
}

type Order = { column: Column; down: boolean } | null;

export function Rollouts({ rows }: { rows: readonly Row[] }) {
  const [order, setOrder] = useState<Order>(null);
  // The rollouts that the user marked last, at most two.
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const sorted = useMemo(() => (order ? sort(rows, order.column, order.down) : rows), [rows, order]);
  const choose = ({ id }: Row): void =>
    setChosen((now) => (now.includes(id) ? now.filter((one) => one !== id) : [...now, id].slice(-2)));
  return (
    <>
      <CompareHint chosen={chosen} />
      <Grid
        label="Rollouts"
        className="rollouts"
        rows={sorted}
        rowPx={24}
        multiple
        head={<Head order={order} setOrder={setOrder} />}
        cellsOf={() => 1}
        keyOf={({ id }) => id}
        line={(row, position) => (
          <Line row={row} {...position} chosen={chosen.includes(row.id)} onChoose={() => choose(row)} />
        )}
      />
    </>
  );
}

function CompareHint({ chosen }: { chosen: readonly string[] }) {
  const [one, other] = chosen;
  return (
    <p className="hint dim">
      {one && other ? (
        <a className="button" href={toCompare(one, other)}>
          Compare the two
        </a>
      ) : (
        `Mark two rollouts to compare them (${chosen.length} marked). Keys: ↑ ↓ move, Enter opens, Space marks.`
      )}
    </p>
  );
}

function Head({ order, setOrder }: { order: Order; setOrder: (order: Order) => void }) {
  return (
    <div role="row" className="line head" aria-rowindex={1}>
      <span role="columnheader">
        <span className="visually-hidden">Marked</span>
      </span>
      {COLUMNS.map((column) => {
        const sorted = order?.column === column ? (order.down ? 'descending' : 'ascending') : undefined;
        return (
          <span
            role="columnheader"
            key={column.name}
            aria-sort={sorted}
            className={column.right ? 'right' : ''}
          >
            <button type="button" onClick={() => setOrder(next(order, column))}>
              {column.name}
              <span aria-hidden="true">{sorted === undefined ? '' : order?.down ? ' ↓' : ' ↑'}</span>
            </button>
          </span>
        );
      })}
    </div>
  );
}

function next(order: Order, column: Column): Order {
  if (order?.column !== column) return { column, down: column.right === true };
  const first = column.right === true;
  return order.down === first ? { column, down: !first } : null;
}

type LineProps = Position & { row: Row; chosen: boolean; onChoose: () => void };

function Line({ row, at, top, focus, onFocus, chosen, onChoose }: LineProps) {
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && event.target === event.currentTarget) location.hash = toRollout(row.id);
    if (event.key !== ' ') return;
    event.preventDefault();
    onChoose();
  };
  return (
    <div
      role="row"
      className={`line${chosen ? ' chosen' : ''}`}
      aria-rowindex={at + 2}
      aria-selected={chosen}
      tabIndex={focus === null ? -1 : 0}
      data-cell={`${at}.0`}
      onFocus={() => onFocus(0)}
      onKeyDown={onKeyDown}
      style={{ transform: `translateY(${top}px)` }}
    >
      <span role="gridcell">
        <input
          type="checkbox"
          tabIndex={-1}
          checked={chosen}
          onChange={onChoose}
          aria-label={`mark ${row.instance} ${row.index}`}
        />
      </span>
      {COLUMNS.map((column) => (
        <span role="gridcell" key={column.name} className={column.right ? 'right cut' : 'cut'}>
          {cellOf(column, row)}
        </span>
      ))}
    </div>
  );
}

const Name = ({ row: { id, instance } }: { row: Row }) => (
  <a href={toRollout(id)} tabIndex={-1} className="mono" title={instance}>
    {instance}
  </a>
);

function End({ row: { result, live } }: { row: Row }) {
  if (live) return <span className="dim">{words(live.stage)}</span>;
  if (!result) return null;
  if (result.failure) {
    return (
      <span title={result.reason ?? ''}>
        <span className="bad">{words(result.failure)}</span> <span className="dim">{result.reason}</span>
      </span>
    );
  }
  return (
    <>
      {words(result.exit ?? '')}
      {result.forged && <span className="bad"> forged</span>}
    </>
  );
}

function sort(rows: readonly Row[], { of }: Column, down: boolean): Row[] {
  const sign = down ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [one, other] = [of(a) ?? -1, of(b) ?? -1];
    return one === other ? 0 : one < other ? -sign : sign;
  });
}
