/** Renders tables as text: columns and gaps, no borders. */
import Table from 'cli-table3';

export type Column = { name: string; align?: 'left' | 'right'; width?: number };

export const GAP = 2;

const BORDERLESS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat(['middle'])
    .map((name) => [name, '']),
);

/** Cells longer than their column's width are wrapped; without a width a column is as wide as it needs. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    chars: BORDERLESS,
    head: columns.map((column) => column.name),
    colWidths: columns.map((column) => column.width ?? null),
    colAligns: columns.map((column) => column.align ?? 'left'),
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': GAP, compact: true },
    wordWrap: true,
  });
  for (const row of rows) table.push([...row]);
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Cuts the middle out of a text: instance ids differ at their ends. */
export function middle(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
