/** A grid that draws only visible rows. Arrow and page keys, Home and End move the focus, and the grid scrolls to the focused cell. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { Fragment, type KeyboardEvent, type ReactNode, useRef, useState } from 'react';

/** Properties of a line of the grid besides its row. `top` is in pixels. `focus`: the focused column; null: another line has the focus. */
export type Position = { at: number; top: number; focus: number | null; onFocus: (column: number) => void };

type Props<T> = {
  label: string;
  className: string;
  rows: readonly T[];
  rowPx: number;
  multiple?: boolean;
  head?: ReactNode;
  /** Returns the number of cells of a row that can have the focus. */
  cellsOf: (row: T) => number;
  keyOf: (row: T) => string;
  line: (row: T, position: Position) => ReactNode;
};

export function Grid<T>({ label, className, rows, rowPx, multiple = false, head, ...own }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 12,
  });
  const { cell, setCell, onKeyDown } = useFocus(rows, own.cellsOf, (row, column) => {
    virtual.scrollToIndex(row);
    // The cell is drawn after the list has scrolled.
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-cell="${row}.${column}"]`)?.focus(),
    );
  });
  const lineAt = (at: number, top: number): ReactNode => {
    const row = rows[at];
    if (!row) return null;
    const focus = at === cell.row ? cell.column : null;
    const onFocus = (column: number): void => setCell({ row: at, column });
    return <Fragment key={own.keyOf(row)}>{own.line(row, { at, top, focus, onFocus })}</Fragment>;
  };
  if (rows.length === 0) return <p className="notice dim">Nothing passes the filter.</p>;
  return (
    <div className={`list ${className}`} ref={scroller}>
      <div
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + (head ? 1 : 0)}
        aria-multiselectable={multiple}
        onKeyDown={onKeyDown}
        tabIndex={-1}
      >
        {head}
        <div role="rowgroup" className="body" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => lineAt(index, start))}
        </div>
      </div>
    </div>
  );
}

const PAGE = 20;
/** Rows and columns by which each key moves the focus. */
const MOVES: Record<string, [down: number, right: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-PAGE, 0],
  PageDown: [PAGE, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/** @param show draws and focuses a cell after a key moved the focus */
function useFocus<T>(
  rows: readonly T[],
  cellsOf: (row: T) => number,
  show: (row: number, column: number) => void,
) {
  const [chosen, setCell] = useState({ row: 0, column: 0 });
  const within = ({ row, column }: typeof chosen) => {
    const at = Math.max(0, Math.min(rows.length - 1, row));
    const line = rows[at];
    const last = line === undefined ? 0 : cellsOf(line) - 1;
    return { row: at, column: Math.max(0, Math.min(last, column)) };
  };
  const cell = within(chosen);
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = MOVES[event.key];
    if (!move || event.altKey || event.metaKey) return;
    event.preventDefault();
    const next = within({ row: cell.row + move[0], column: cell.column + move[1] });
    setCell(next);
    show(next.row, next.column);
  };
  return { cell, setCell, onKeyDown };
}
