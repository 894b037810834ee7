/** Renders tables whose columns are functions of the items in the rows. */
import { type Column, renderTable } from '@swefarm/trajectories';

export type ColumnOf<Item> = Column & { of: (item: Item) => string };

export const left = <Item>(name: string, of: (item: Item) => string): ColumnOf<Item> => ({ name, of });

export const right = <Item>(name: string, of: (item: Item) => string): ColumnOf<Item> => ({
  name,
  of,
  align: 'right',
});

export const tableOf = <Item>(items: readonly Item[], columns: readonly ColumnOf<Item>[]): string =>
  renderTable(
    columns,
    items.map((item) => columns.map(({ of }) => of(item))),
  );
