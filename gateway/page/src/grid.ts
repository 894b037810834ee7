/** A grid that draws only visible rows. Arrow keys move the focused cell and scroll to it. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';

export type Cell = { row: number; column: number };

export function useGrid(size: { rows: number; columns: (row: number) => number }, rowPx: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: size.rows,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 12,
  });
  const [cell, setCell] = useState<Cell>({ row: 0, column: 0 });
  const moved = useRef(false);
  const row = Math.min(cell.row, Math.max(0, size.rows - 1));
  const column = Math.min(cell.column, Math.max(0, size.columns(row) - 1));

  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    virtual.scrollToIndex(row);
    // The cell is drawn after the list has scrolled.
    const frame = requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-cell="${row}.${column}"]`)?.focus(),
    );
    return () => cancelAnimationFrame(frame);
  }, [row, column, virtual]);

  const onKeyDown = (event: KeyboardEvent): void => {
    const next = MOVES[event.key]?.({ row, column }, size);
    if (!next || event.altKey || event.metaKey) return;
    event.preventDefault();
    moved.current = true;
    const toRow = Math.max(0, Math.min(size.rows - 1, next.row));
    setCell({ row: toRow, column: Math.max(0, Math.min(size.columns(toRow) - 1, next.column)) });
  };
  return { cell: { row, column }, setCell, onKeyDown, scroller, virtual };
}

const PAGE = 20;
type Move = (from: Cell, size: { rows: number; columns: (row: number) => number }) => Cell;
const MOVES: Record<string, Move> = {
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  PageUp: ({ row, column }) => ({ row: row - PAGE, column }),
  PageDown: ({ row, column }) => ({ row: row + PAGE, column }),
  Home: ({ row }) => ({ row, column: 0 }),
  End: ({ row }, size) => ({ row, column: size.columns(row) - 1 }),
};
