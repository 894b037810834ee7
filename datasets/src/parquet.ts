/** Reads parquet files, one row group at a time. */
import { errorMessage, UsageError } from '@swefarm/shared';
import {
  asyncBufferFromFile,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { COLUMNS, ID_COLUMNS } from './families/registry.ts';
import { mapLeaves, type Row } from './fields/fields.ts';
import type { RawRow } from './problem.ts';

/** Yields the rows with the columns in `COLUMNS`. @throws UsageError if the file is damaged or has none of `ID_COLUMNS` */
export async function* readParquet(path: string): AsyncGenerator<RawRow> {
  const file = await asyncBufferFromFile(path);
  const { metadata, present } = await guarded(path, 0, async () => {
    const metadata = await parquetMetadataAsync(file);
    return { metadata, present: parquetSchema(metadata).children.map(({ element }) => element.name) };
  });
  const columns = COLUMNS.filter((name) => present.includes(name));
  if (!columns.some((name) => ID_COLUMNS.includes(name))) {
    throw new UsageError(
      `${path}: has no column instance_id (columns: ${present.slice(0, 20).join(', ')}); is this a SWE dataset?`,
    );
  }
  for await (const { where, row } of rowsByGroup(path, { file, metadata, columns }))
    yield { where, value: mapLeaves(row, jsonLeaf) as Row };
}

type ReadOptions = Omit<Parameters<typeof parquetReadObjects>[0], 'rowStart' | 'rowEnd'>;

/** Yields all rows with their positions. @throws UsageError if the file is truncated or damaged */
export async function* rowsByGroup(
  path: string,
  options: ReadOptions & { metadata: FileMetaData },
): AsyncGenerator<{ where: string; row: Row }> {
  let rowStart = 0;
  for (const group of options.metadata.row_groups) {
    const part = { rowStart, rowEnd: rowStart + Number(group.num_rows) };
    const read = () => parquetReadObjects({ ...options, compressors, ...part });
    for (const [index, row] of (await guarded(path, rowStart, read)).entries())
      yield { where: `row ${part.rowStart + index + 1}`, row };
    rowStart = part.rowEnd;
  }
}

/** Calls `read`, which reads rows from `row` on. @throws UsageError instead of the errors of the library */
export async function guarded<T>(path: string, row: number, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new UsageError(
      `${path}: the parquet file is cut off or damaged near row ${row + 1} (${errorMessage(error)}); fetch it again`,
      { cause: error },
    );
  }
}

/** Converts a parquet value that JSON cannot represent; undefined for all other values. */
function jsonLeaf(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  return value instanceof Date ? value.toISOString() : undefined;
}
