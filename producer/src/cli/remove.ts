/** `swefarm remove`: deletes everything of a run in Redis and in the artifact store. */
import { unknownRun } from '@swefarm/gateway';
import { type Farm, UsageError } from '@swefarm/shared';
import { command, flag } from './declare.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

export const remove = command({
  arguments: { '<runs...>': 'run ids' },
  options: {
    '--unfinished': flag('also remove runs that are not done; their running rollouts end'),
    ...FARM,
  },
  example: 'swefarm remove RUN',
  async run(o, { runs }) {
    await using farm = await openFarmPatiently(producerConfig(o));
    for (const id of runs) await checkRemovable(farm, id, o.unfinished);
    for (const id of runs) await farm.runs.remove(id);
    printStatus(`removed ${runs.join(', ')}`);
  },
});

async function checkRemovable(farm: Farm, id: string, unfinished: boolean): Promise<void> {
  // A run with an unreadable record can be removed too.
  if (!(await farm.runs.exists(id))) throw unknownRun(farm, id);
  const groups = [...(await farm.results.groups(id)).values()];
  const left = groups.reduce((sum, group) => sum + Math.max(0, group.left), 0);
  if (left === 0 || unfinished) return;
  throw new UsageError(
    `run ${id}: ${left} rollouts have no result; cancel it first, or remove it with --unfinished`,
  );
}
