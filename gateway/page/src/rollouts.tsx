/** Rollouts as a sortable list that draws only visible rows. The user can compare two rollouts. */
import { type KeyboardEvent, useMemo, useState } from 'react';
import { decimal, duration, moment, short, words } from './format.ts';
import { useGrid } from './grid.ts';
import { Mark } from './mark.tsx';
import { toCompare, toRollout } from './route.ts';
import { type Row, STATES } from './rows.ts';

type Column = { name: string; right?: boolean; of: (row: Row) => number | string };

const COLUMNS: readonly Column[] = [
  { name: 'Outcome', of: (row) => STATES.indexOf(row.state) },
  { name: 'Instance', of: (row) => row.instance },
  { name: '#', right: true, of: (row) => row.index },
  { name: 'Reward', right: true, of: (row) => row.result?.reward ?? -1 },
  { name: 'Turns', right: true, of: (row) => row.result?.turns ?? row.live?.turns ?? -1 },
  { name: 'Tokens', right: true, of: (row) => row.result?.tokens ?? -1 },
  { name: 'Time', right: true, of: (row) => row.result?.seconds ?? -1 },
  { name: 'Exit or failure', of: (row) => row.result?.failure ?? row.result?.exit ?? row.live?.stage ?? '' },
  { name: 'Node', of: (row) => row.result?.node ?? row.live?.node ?? '' },
  { name: 'Att.', right: true, of: (row) => row.result?.attempt ?? row.live?.attempt ?? 0 },
  { name: 'Ended', right: true, of: (row) => row.result?.finished_at ?? 0 },
];

const ROW_PX = 24;

export function Rollouts({ rows }: { rows: readonly Row[] }) {
  const [order, setOrder] = useState<Order>(null);
  const [chosen, choose] = useChosen();
  const sorted = useMemo(() => (order ? sort(rows, order.column, order.down) : rows), [rows, order]);
  const { virtual, ...grid } = useGrid({ rows: sorted.length, columns: () => 1 }, ROW_PX);
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = sorted[grid.cell.row];
    if (row && event.key === ' ') {
      event.preventDefault();
      choose(row.id);
    } else if (row && event.key === 'Enter' && isRow(event.target)) location.hash = toRollout(row.id);
    else grid.onKeyDown(event);
  };
  return (
    <>
      <CompareHint chosen={chosen} />
      <div className="list rollouts" ref={grid.scroller}>
        <div
          role="grid"
          aria-label="Rollouts"
          aria-rowcount={sorted.length + 1}
          aria-multiselectable="true"
          onKeyDown={onKeyDown}
          tabIndex={-1}
        >
          <Head order={order} setOrder={setOrder} />
          <div role="rowgroup" className="body" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map(({ index, start }) => {
              const row = sorted[index];
              return (
                row && (
                  <Line
                    key={row.id}
                    row={row}
                    at={index}
                    top={start}
                    focused={grid.cell.row === index}
                    chosen={chosen.includes(row.id)}
                    onFocus={() => grid.setCell({ row: index, column: 0 })}
                    onChoose={() => choose(row.id)}
                  />
                )
              );
            })}
          </div>
        </div>
      </div>
      {sorted.length === 0 && <p className="empty">Nothing passes the filter.</p>}
    </>
  );
}

const isRow = (target: EventTarget): boolean => target instanceof HTMLElement && target.role === 'row';

/** Returns the two rollouts that were marked last, and a function that marks or unmarks a rollout. */
function useChosen(): [readonly string[], (id: string) => void] {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const choose = (id: string): void =>
    setChosen((now) => (now.includes(id) ? now.filter((one) => one !== id) : [...now, id].slice(-2)));
  return [chosen, choose];
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

type Order = { column: Column; down: boolean } | null;

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
            tabIndex={-1}
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

type LineProps = {
  row: Row;
  at: number;
  top: number;
  focused: boolean;
  chosen: boolean;
  onFocus: () => void;
  onChoose: () => void;
};

function Line({ row, at, top, focused, chosen, onFocus, onChoose }: LineProps) {
  const { result, live } = row;
  const cells = [
    <Mark key="state" state={row.state} />,
    <a key="name" href={toRollout(row.id)} tabIndex={-1} className="mono cut" title={row.instance}>
      {row.instance}
    </a>,
    row.index,
    decimal(result?.reward ?? null),
    result?.turns ?? live?.turns ?? '',
    result ? short(result.tokens) : '',
    result ? duration(result.seconds) : live ? duration((Date.now() - live.claimed_at) / 1000) : '',
    <End key="end" row={row} />,
    result?.node ?? live?.node ?? '',
    result?.attempt ?? live?.attempt ?? '',
    result ? moment(result.finished_at) : '',
  ];
  return (
    <div
      role="row"
      className={`line${chosen ? ' chosen' : ''}`}
      aria-rowindex={at + 2}
      aria-selected={chosen}
      tabIndex={focused ? 0 : -1}
      data-cell={`${at}.0`}
      onFocus={onFocus}
      style={{ transform: `translateY(${top}px)` }}
    >
      <span role="gridcell" tabIndex={-1}>
        <input
          type="checkbox"
          tabIndex={-1}
          checked={chosen}
          onChange={onChoose}
          aria-label={`mark ${row.instance} ${row.index}`}
        />
      </span>
      {COLUMNS.map(({ name, right }, column) => (
        <span role="gridcell" key={name} className={right ? 'right cut' : 'cut'} tabIndex={-1}>
          {cells[column]}
        </span>
      ))}
    </div>
  );
}

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
    const [one, other] = [of(a), of(b)];
    return one === other ? 0 : one < other ? -sign : sign;
  });
}
