/** Writes rows to parquet files (shards) whose row groups have a bounded size. */
import type { CompressionCodec, Encoding } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import type { ExportRequest, ExportWriter } from './format.ts';
import { type Shape, schemaOf, storedAs } from './parquetschema.ts';
import { addRowGroup } from './rowgroup.ts';
import { openShards, type ShardOptions } from './shards.ts';

export type ParquetOptions = Pick<ShardOptions<Record<string, unknown>>, 'rowsOf' | 'groupBytes'> & {
  columns: Readonly<Record<string, Shape>>;
  /** Fixed encodings of columns with few repeated numbers, for which the encoder's search for an encoding would waste time. */
  stored?: Readonly<Record<string, { encoding: Encoding; codec: CompressionCodec }>>;
};

export const openParquetShards = (
  request: ExportRequest,
  { columns, stored = {}, ...options }: ParquetOptions,
): Promise<ExportWriter> =>
  openShards(request, {
    ...options,
    ending: 'parquet',
    shardBytes: 256 * 1024 ** 2,
    facts: { columns: Object.keys(columns) },
    create(path) {
      // Statistics would repeat whole prompts, and no reader uses them.
      const parts = { writer: fileWriter(path), schema: schemaOf(columns), statistics: false };
      const file = new ParquetWriter(parts);
      return {
        async add(rows) {
          const columnData = Object.entries(columns).map(([name, shape]) => ({
            name,
            ...stored[name],
            data: rows.map((row) => storedAs(shape, row[name])),
          }));
          addRowGroup(file, columnData, rows.length);
        },
        end: async () => await file.finish(),
      };
    },
  });
