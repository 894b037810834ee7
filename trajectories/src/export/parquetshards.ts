/** Writes rows to parquet files (shards) whose row groups have a bounded size. */
import type { CompressionCodec, Encoding } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { writing } from '../output/appendfile.ts';
import type { ExportRequest, ExportWriter } from './format.ts';
import { type Shape, schemaOf, storedAs } from './parquetschema.ts';
import type { ExportedRollout } from './rollout.ts';
import { addRowGroup } from './rowgroup.ts';
import { openShards } from './shards.ts';

export type Row = Record<string, unknown>;

export type ParquetOptions = {
  columns: Readonly<Record<string, Shape>>;
  /** Returns the rows of a rollout and their estimated bytes, or the reason why the rollout has none. */
  rowsOf(rollout: ExportedRollout): { rows: Row[]; bytes: number } | { skipped: string };
  /** Estimated bytes at which a row group ends. */
  groupBytes: number;
  /** Fixed encodings of columns with few repeated numbers, for which the encoder's search for an encoding would waste time. */
  stored?: Readonly<Record<string, { encoding: Encoding; codec: CompressionCodec }>>;
};

const SHARD_BYTES = 256 * 1024 ** 2;

export async function openParquetShards(
  request: ExportRequest,
  { columns, rowsOf, groupBytes: mostBytes, stored = {} }: ParquetOptions,
): Promise<ExportWriter> {
  const shards = await openShards(request, 'parquet');
  let file: ParquetWriter | null = null;
  let group: Row[] = [];
  let rollouts: string[] = [];
  let groupBytes = 0;
  let rows = 0;
  let bytes = 0;
  const endGroup = (): void => {
    file ??= new ParquetWriter({
      writer: fileWriter(shards.next()),
      schema: schemaOf(columns),
      // Statistics would repeat whole prompts, and no reader uses them.
      statistics: false,
    });
    const columnData = Object.entries(columns).map(([name, shape]) => ({
      name,
      ...stored[name],
      data: group.map((row) => storedAs(shape, row[name])),
    }));
    addRowGroup(file, columnData, group.length);
    rows += group.length;
    bytes += groupBytes;
    group = [];
    groupBytes = 0;
  };
  const endShard = async (): Promise<void> => {
    if (rollouts.length === 0) return;
    endGroup();
    await file?.finish();
    await shards.add(rows, rollouts);
    file = null;
    rollouts = [];
    rows = 0;
    bytes = 0;
  };
  return {
    written: shards.written,
    async write(rollout) {
      const found = rowsOf(rollout);
      if ('skipped' in found) return found.skipped;
      group.push(...found.rows);
      rollouts.push(rollout.line.rollout_id);
      groupBytes += found.bytes;
      await writing(request.path, async () => {
        if (groupBytes >= mostBytes) endGroup();
        if (bytes >= SHARD_BYTES) await endShard();
      });
      return null;
    },
    async finish() {
      await writing(request.path, endShard);
      await shards.finish({ columns: Object.keys(columns) });
    },
    [Symbol.asyncDispose]: () => shards[Symbol.asyncDispose](),
  };
}
