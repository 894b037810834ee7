/** Writes a dataset for verl: train.parquet and val.parquet. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Instance, UsageError } from '@swefarm/shared';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { type Shape, schemaOf, storedAs } from '../../export/parquetschema.ts';
import type { PromptStyle } from './prompts.ts';
import { agentNameOf, type Split, splitOf, type VerlRow, verlRow } from './rows.ts';

const SPLITS: readonly Split[] = ['train', 'val'];

export type VerlDatasetOptions = {
  style: PromptStyle;
  /** Share of instances in val. Instance ids decide the split. */
  valShare: number;
  agentName: string | undefined;
  gold: boolean;
};

/** Writes the files. Throws UsageError when the folder cannot be written, or a split with a share above 0 would have no row. */
export async function writeVerlDataset(
  instances: readonly Instance[],
  folder: string,
  { style, valShare, agentName = agentNameOf(style), gold }: VerlDatasetOptions,
): Promise<Record<string, { path: string; rows: number }>> {
  const rows = instances.map((instance) =>
    verlRow(instance, splitOf(instance.instance_id, valShare), { style, gold, agentName }),
  );
  requireRows(rows, valShare);
  const written: Record<string, { path: string; rows: number }> = {};
  for (const split of SPLITS) {
    const path = join(folder, `${split}.parquet`);
    const own = rows.filter((row) => row.extra_info.split === split);
    try {
      await mkdir(folder, { recursive: true });
      await writeFile(path, verlParquet(own));
    } catch (error) {
      throw new UsageError(`${path}: cannot be written: ${(error as Error).message}`, { cause: error });
    }
    written[split] = { path, rows: own.length };
  }
  return written;
}

/** Throws UsageError if a split is empty: instance ids decide the split, so few instances can all be in one split. */
function requireRows(rows: readonly { extra_info: { split: string } }[], valShare: number): void {
  if (valShare === 0 || valShare === 1) return;
  const empty = SPLITS.find((split) => !rows.some((row) => row.extra_info.split === split));
  if (empty === undefined) return;
  const side = empty === 'val' ? 'larger' : 'smaller';
  throw new UsageError(
    `${empty}.parquet would have no row: of ${rows.length} instances none falls to it with --val-share ${valShare}; choose a ${side} share, or ${empty === 'val' ? 0 : 1} for a dataset without ${empty}`,
  );
}

const KWARGS: Shape = { create_kwargs: { instance_id: 'text', instance: 'text' } };
const COLUMNS = {
  data_source: 'text',
  prompt: [{ role: 'text', content: 'text' }],
  ability: 'text',
  reward_model: { style: 'text', ground_truth: 'text' },
  agent_name: 'text',
  extra_info: {
    split: 'text',
    index: 'integer',
    instance_id: 'text',
    repo: 'text',
    base_commit: 'text',
    tests: { FAIL_TO_PASS: ['text'], PASS_TO_PASS: ['text'] },
    prompt_style: 'text',
    need_tools_kwargs: 'boolean',
    tools_kwargs: { bash: KWARGS, submit_solution: KWARGS },
  },
} as const satisfies Record<keyof VerlRow, Shape>;

/** Encodes rows of verl's dataset as a parquet file. Either all rows have a gold patch, or none has. */
export function verlParquet(rows: readonly VerlRow[]): Buffer {
  const gold = rows.some((row) => row.extra_info.patch !== undefined);
  const shape: Record<string, Shape> = {
    ...COLUMNS,
    extra_info: { ...COLUMNS.extra_info, ...(gold ? { patch: 'text' as const } : {}) },
  };
  const columnData = Object.entries(shape).map(([name, of]) => ({
    name,
    data: rows.map((row) => storedAs(of, row[name as keyof VerlRow])),
  }));
  // Statistics would repeat whole prompts, and no reader uses them.
  return Buffer.from(parquetWriteBuffer({ columnData, schema: schemaOf(shape), statistics: false }));
}
