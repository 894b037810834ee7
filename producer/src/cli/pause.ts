/** `swefarm pause` and `resume`: a run stands still (by hand, or by itself when infrastructure spoils it) and goes on. */
import { type Farm, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { openFarmPatiently } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { say } from './terminal.ts';

export function addPause(program: Command): void {
  const command = program
    .command('pause')
    .description('start nothing more of a run until it is resumed; what runs goes on')
    .argument('<run>', 'id of the run');
  addFarmOptions(command).action(async (runId: string, flags: Flags) => {
    await using farm = await openRun(runId, flags);
    await farm.groups.pause(runId, 'paused by hand');
    say(`run ${runId} is paused; go on with: swefarm resume ${runId}`);
  });
}

export function addResume(program: Command): void {
  const command = program
    .command('resume')
    .description('go on with a run that is paused, or that paused itself')
    .argument('<run>', 'id of the run');
  addFarmOptions(command).action(async (runId: string, flags: Flags) => {
    await using farm = await openRun(runId, flags);
    const paused = await farm.groups.paused(runId);
    if (!paused || paused.reason === null) throw new UsageError(`run ${runId} is not paused`);
    const { committed, failures, answers, unread } = await farm.results.counts(runId);
    await farm.groups.resume(runId, { committed, failures, answers, unread });
    say(`run ${runId} goes on; it was paused: ${paused.reason}`);
  });
}

async function openRun(runId: string, flags: Flags): Promise<Farm> {
  const farm = await openFarmPatiently(producerConfig(flags));
  if (await farm.runs.exists(runId)) return farm;
  await farm[Symbol.asyncDispose]();
  throw new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists what there is`);
}
