/** Writes a dataset for verl: train.parquet and val.parquet, with the options that shape them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Instance, UsageError } from '@swefarm/shared';
import { InvalidArgumentError, Option } from 'commander';
import { verlParquet } from './parquet.ts';
import { PROMPT_STYLES, type PromptStyle } from './prompts.ts';
import { agentNameOf, type Split, splitOf, verlRow } from './rows.ts';

const SPLITS: readonly Split[] = ['train', 'val'];

/** An entry of formats/registry.ts. */
export const verlDataset = {
  description: 'write train.parquet and val.parquet for verl',
  options: () => [
    new Option('--prompt-style <style>', 'work with tools, or answer with a patch')
      .choices(PROMPT_STYLES)
      .default('tools'),
    new Option('--val-share <share>', 'share of instances, chosen by their ids, that go to val')
      .argParser(share)
      .default(0.05),
    new Option('--agent-name <name>', "verl's agent loop (default: tool_agent; single_turn_agent)"),
    new Option('--with-gold', 'put the gold patch into the rows'),
  ],
  /** Throws UsageError when the folder cannot be written, or a split that was wanted would have no row. */
  async write(
    instances: readonly Instance[],
    folder: string,
    flags: Readonly<Record<string, unknown>>,
  ): Promise<Record<string, { path: string; rows: number }>> {
    const style = flags.promptStyle as PromptStyle;
    const options = {
      style,
      gold: flags.withGold === true,
      agentName: (flags.agentName as string | undefined) ?? agentNameOf(style),
    };
    const rows = instances.map((instance) =>
      verlRow(instance, splitOf(instance.instance_id, flags.valShare as number), options),
    );
    requireRows(rows, flags.valShare as number);
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
  },
};

/** Ids decide the split, so few instances can all fall to one side. A share of 0 or 1 asks for that. */
function requireRows(rows: readonly { extra_info: { split: string } }[], valShare: number): void {
  if (valShare === 0 || valShare === 1) return;
  const empty = SPLITS.find((split) => !rows.some((row) => row.extra_info.split === split));
  if (empty === undefined) return;
  const side = empty === 'val' ? 'larger' : 'smaller';
  throw new UsageError(
    `${empty}.parquet would have no row: of ${rows.length} instances none falls to it with --val-share ${valShare}; choose a ${side} share, or ${empty === 'val' ? 0 : 1} for a dataset without ${empty}`,
  );
}

function share(value: string): number {
  const parsed = Number(value);
  if (value.trim() === '' || !(parsed >= 0 && parsed <= 1)) {
    throw new InvalidArgumentError('expected a share between 0 and 1.');
  }
  return parsed;
}
