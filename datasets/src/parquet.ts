/** Reads parquet by row group, and only the columns that an instance needs. */
import { errorMessage, UsageError } from '@swefarm/shared';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { COLUMNS, ID_COLUMNS } from './families/registry.ts';
import type { RawRow } from './problem.ts';

/** @throws UsageError when the file is truncated or damaged, or has no known column */
export async function* readParquet(path: string): AsyncGenerator<RawRow> {
  const file = await asyncBufferFromFile(path);
  let rowStart = 0;
  try {
    const metadata = await parquetMetadataAsync(file);
    // Members of structs have names of their own, which are no columns.
    const present = parquetSchema(metadata).children.map(({ element }) => element.name);
    const columns = COLUMNS.filter((name) => present.includes(name));
    if (!columns.some((name) => ID_COLUMNS.includes(name))) {
      throw new UsageError(
        `${path}: has no column instance_id (columns: ${present.slice(0, 20).join(', ')}); is this a SWE dataset?`,
      );
    }
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      const rows = await parquetReadObjects({ file, metadata, columns, compressors, rowStart, rowEnd });
      for (const [index, row] of rows.entries()) {
        yield { where: `row ${rowStart + index + 1}`, value: plain(row) };
      }
      rowStart = rowEnd;
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const message = `${path}: the parquet file is cut off or damaged near row ${rowStart + 1}`;
    throw new UsageError(`${message} (${errorMessage(error)}); fetch it again`, { cause: error });
  }
}

/** Converts parquet's values, also within structs and lists, to what JSON would hold. */
const plain = (row: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plainValue(value)]));

function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(plainValue);
  if (value !== null && typeof value === 'object') return plain(value as Record<string, unknown>);
  return value;
}
