/** A table whose first column names the rows. */
import type { ReactNode } from 'react';

export type Column<T> = {
  name: ReactNode;
  of: (row: T) => ReactNode;
  className?: string;
};

type TableProps<T> = { columns: readonly Column<T>[]; rows: readonly T[]; keyOf: (row: T) => string };

export function Table<T>({ columns, rows, keyOf }: TableProps<T>) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            {columns.map(({ name, className }, at) => (
              <th scope="col" key={at} className={className === 'right' ? 'right' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ of, className }, at) => {
                const Cell = at === 0 ? 'th' : 'td';
                return (
                  <Cell key={at} scope={at === 0 ? 'row' : undefined} className={className}>
                    {of(row)}
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
