/** Writes a dataset for verl: train.parquet and val.parquet. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Instance, UsageError } from '@swefarm/shared';
import { verlParquet } from './parquet.ts';
import type { PromptStyle } from './prompts.ts';
import { agentNameOf, type Split, splitOf, verlRow } from './rows.ts';

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
      await writeFile(path, await verlParquet(own));
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
