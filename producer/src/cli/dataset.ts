/** `swefarm dataset`: datasets of this farm in the form another trainer reads. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { verlParquet } from '../formats/verl/parquet.ts';
import { PROMPT_STYLES, type PromptStyle } from '../formats/verl/prompts.ts';
import { agentNameOf, splitOf, verlRow } from '../formats/verl/rows.ts';
import { EXIT } from '../run/exit.ts';
import { addDatasetOptions, datasetOf, type Flags } from './options.ts';
import { print } from './terminal.ts';

export function addDataset(program: Command): void {
  const dataset = program.command('dataset').description('write a dataset in the form a trainer reads');
  const toVerl = dataset.command('to-verl').description('train.parquet and val.parquet for verl');
  const option = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Output:');
  toVerl
    .addOption(option('--output-dir <folder>', 'where the two files go').makeOptionMandatory())
    .addOption(
      option('--prompt-style <style>', 'work with tools, or answer with a patch')
        .choices(PROMPT_STYLES)
        .default('tools'),
    )
    .addOption(
      option('--val-share <share>', 'share of instances, chosen by their ids, that go to val')
        .argParser(share)
        .default(0.05),
    )
    .addOption(option('--agent-name <name>', "verl's agent loop (default: tool_agent; single_turn_agent)"))
    .addOption(option('--with-gold', 'the rows carry the gold patch'));
  addDatasetOptions(toVerl).action(async (flags: Flags) => {
    process.exitCode = await writeVerl(flags);
  });
}

function share(value: string): number {
  const parsed = Number(value);
  if (value.trim() === '' || !(parsed >= 0 && parsed <= 1)) {
    throw new InvalidArgumentError('expected a share between 0 and 1.');
  }
  return parsed;
}

async function writeVerl(flags: Flags): Promise<number> {
  const { instances } = await datasetOf(flags);
  const style = flags.promptStyle as PromptStyle;
  const options = {
    style,
    gold: flags.withGold === true,
    agentName: (flags.agentName as string | undefined) ?? agentNameOf(style),
  };
  const folder = String(flags.outputDir);
  const rows = instances.map((instance) =>
    verlRow(instance, splitOf(instance.instance_id, flags.valShare as number), options),
  );
  const written: Record<string, unknown> = {};
  for (const split of ['train', 'val'] as const) {
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
  await print(JSON.stringify(written));
  return EXIT.allJudged;
}
