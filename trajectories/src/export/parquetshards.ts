/** Writes rows as shards of parquet: a row group whenever enough bytes are gathered, a new shard whenever a file is large. */
import type { CompressionCodec, Encoding } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { unwritablePath } from './aside.ts';
import type { ExportRequest, ExportWriter } from './format.ts';
import { type Shape, schemaOf, storedAs } from './parquetschema.ts';
import type { ExportedRollout } from './rollout.ts';
import { addRowGroup } from './rowgroup.ts';
import { openShards, type ShardFolder } from './shards.ts';

export type Row = Record<string, unknown>;

export type ParquetOptions = {
  columns: Readonly<Record<string, Shape>>;
  /** The rows of a rollout and about how many bytes they have; or why it has none. */
  rowsOf(rollout: ExportedRollout): { rows: Row[]; bytes: number } | { skipped: string };
  /** Bytes of a row group. */
  groupBytes: number;
  /** How columns are stored that the encoder would otherwise try out: numbers that hardly repeat. */
  stored?: Readonly<Record<string, { encoding: Encoding; codec: CompressionCodec }>>;
};

const SHARD_BYTES = 256 * 1024 ** 2;

export async function openParquetShards(
  request: ExportRequest,
  options: ParquetOptions,
): Promise<ExportWriter> {
  const shards = await openShards(request, 'parquet');
  const table = new ParquetShards(request.path, shards, options);
  return {
    written: shards.written,
    async write(rollout) {
      const found = options.rowsOf(rollout);
      if ('skipped' in found) return found.skipped;
      await table.add(rollout.line.rollout_id, found.rows, found.bytes);
      return null;
    },
    async finish() {
      await table.endShard();
      await shards.finish({ columns: Object.keys(options.columns) });
    },
    [Symbol.asyncDispose]: () => shards[Symbol.asyncDispose](),
  };
}

class ParquetShards {
  readonly #path: string;
  readonly #shards: ShardFolder;
  readonly #columns: Readonly<Record<string, Shape>>;
  readonly #mostBytes: number;
  readonly #stored: NonNullable<ParquetOptions['stored']>;
  #file: ParquetWriter | null = null;
  #group: Row[] = [];
  #groupBytes = 0;
  #rows = 0;
  #bytes = 0;
  #rollouts: string[] = [];

  constructor(path: string, shards: ShardFolder, { columns, groupBytes, stored = {} }: ParquetOptions) {
    this.#mostBytes = groupBytes;
    this.#stored = stored;
    this.#path = path;
    this.#shards = shards;
    this.#columns = columns;
  }

  async add(rolloutId: string, rows: readonly Row[], bytes: number): Promise<void> {
    this.#group.push(...rows);
    this.#rollouts.push(rolloutId);
    this.#groupBytes += bytes;
    if (this.#groupBytes >= this.#mostBytes) this.#endGroup();
    if (this.#bytes >= SHARD_BYTES) await this.endShard();
  }

  /** Nothing happens when no row was added since the last shard. */
  async endShard(): Promise<void> {
    if (this.#rollouts.length === 0) return;
    this.#endGroup();
    this.#trying(() => this.#file?.finish());
    await this.#shards.add(this.#rows, this.#rollouts);
    this.#file = null;
    this.#rollouts = [];
    this.#rows = 0;
    this.#bytes = 0;
  }

  #endGroup(): void {
    this.#trying(() => {
      // Statistics would repeat whole prompts, and no reader uses them.
      this.#file ??= new ParquetWriter({
        writer: fileWriter(this.#shards.next()),
        schema: schemaOf(this.#columns),
        statistics: false,
      });
      const columnData = Object.entries(this.#columns).map(([name, shape]) => ({
        name,
        ...this.#stored[name],
        data: this.#group.map((row) => storedAs(shape, row[name])),
      }));
      addRowGroup(this.#file, columnData, this.#group.length);
    });
    this.#rows += this.#group.length;
    this.#bytes += this.#groupBytes;
    this.#group = [];
    this.#groupBytes = 0;
  }

  #trying(action: () => unknown): void {
    try {
      action();
    } catch (error) {
      throw unwritablePath(this.#path, error);
    }
  }
}
