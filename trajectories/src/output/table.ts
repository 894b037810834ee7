/** Renders tables as text without borders. */
import Table from 'cli-table3';

export type Column = { name: string; align?: 'left' | 'right'; width?: number };

export const GAP = 2;

const BORDERLESS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid']
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat(['middle'])
    .map((name) => [name, '']),
);

/** Renders a table. Cells that exceed the width of their column are wrapped; a column without a width is as wide as its longest cell. */
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

/** Removes the middle of a text that is longer than `most` characters, because instance ids differ at their ends. */
export function middle(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
