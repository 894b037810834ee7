/** Reads the columns of a parquet file that an instance needs, one row group at a time. */
import { errorMessage, UsageError } from '@swefarm/shared';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { COLUMNS, ID_COLUMNS } from './families/registry.ts';
import { mapLeaves, type Row } from './fields/fields.ts';
import type { RawRow } from './problem.ts';

/** Yields the rows. @throws UsageError if the file is truncated or damaged, or has no known column */
export async function* readParquet(path: string): AsyncGenerator<RawRow> {
  const file = await asyncBufferFromFile(path);
  let rowStart = 0;
  try {
    const metadata = await parquetMetadataAsync(file);
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
        yield { where: `row ${rowStart + index + 1}`, value: mapLeaves(row, jsonLeaf) as Row };
      }
      rowStart = rowEnd;
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const message = `${path}: the parquet file is cut off or damaged near row ${rowStart + 1}`;
    throw new UsageError(`${message} (${errorMessage(error)}); fetch it again`, { cause: error });
  }
}

/** Converts a parquet value that JSON cannot represent; undefined for all other values. */
function jsonLeaf(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  return value instanceof Date ? value.toISOString() : undefined;
}
