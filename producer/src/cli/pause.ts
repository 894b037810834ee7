/** `swefarm pause` and `swefarm resume`. The farm also pauses a run when infrastructure fails too many of its rollouts. */
import { type Farm, resumeRun, UsageError } from '@swefarm/shared';
import { command } from './declare.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, type FarmValues, producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

const RUN = { '<run>': 'id of the run' };

export const pause = command({
  arguments: RUN,
  options: FARM,
  example: 'swefarm pause RUN',
  run: (o, { run }) =>
    withRun(o, run, async (farm) => {
      await farm.groups.pause(run, 'paused by hand');
      printStatus(`run ${run} is paused; resume it with: swefarm resume ${run}`);
    }),
});

export const resume = command({
  arguments: RUN,
  options: FARM,
  example: 'swefarm resume RUN',
  run: (o, { run }) =>
    withRun(o, run, async (farm) => {
      const paused = await farm.groups.paused(run);
      if (!paused || paused.reason === null) throw new UsageError(`run ${run} is not paused`);
      await resumeRun(farm, run);
      printStatus(`run ${run} is resumed; it was paused because: ${paused.reason}`);
    }),
});

async function withRun(o: FarmValues, run: string, act: (farm: Farm) => Promise<void>): Promise<void> {
  await using farm = await openFarmPatiently(producerConfig(o));
  if (!(await farm.runs.exists(run)))
    throw new UsageError(`run ${run}: not at ${farm.address}; swefarm status lists all runs`);
  await act(farm);
}
