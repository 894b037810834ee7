/** `swefarm remove`: deletes everything of a run in Redis and in the artifact store. */

import { unknownRun } from '@swefarm/gateway';
import { type Farm, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { openFarmPatiently } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { say } from './terminal.ts';

export function addRemove(program: Command): void {
  const command = program
    .command('remove')
    .argument('<runs...>', 'run ids')
    .option('--unfinished', 'also remove runs that are not done; their running rollouts end');
  addFarmOptions(command).action(async (ids: string[], flags: Flags) => {
    await using farm = await openFarmPatiently(producerConfig(flags));
    for (const id of ids) await checkRemovable(farm, id, flags.unfinished === true);
    for (const id of ids) await farm.runs.remove(id);
    say(`removed ${ids.join(', ')}`);
  });
}

async function checkRemovable(farm: Farm, id: string, unfinished: boolean): Promise<void> {
  // This is the only way to remove a run with an unreadable record.
  if (!(await farm.runs.exists(id))) throw unknownRun(farm, id);
  const groups = [...(await farm.results.groups(id)).values()];
  const left = groups.reduce((sum, group) => sum + Math.max(0, group.left), 0);
  if (left === 0 || unfinished) return;
  throw new UsageError(
    `run ${id}: ${left} rollouts have no result; cancel it first, or remove it with --unfinished`,
  );
}
