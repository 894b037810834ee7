/** `swefarm pause` and `swefarm resume`. A run also pauses itself, when infrastructure fails too many of its rollouts. */
import { type Farm, resumeRun, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { openFarmPatiently } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { say } from './terminal.ts';

export function addPause(program: Command): void {
  const command = program.command('pause').argument('<run>', 'id of the run');
  addFarmOptions(command).action(async (runId: string, flags: Flags) => {
    await using farm = await openRun(runId, flags);
    await farm.groups.pause(runId, 'paused by hand');
    say(`run ${runId} is paused; resume it with: swefarm resume ${runId}`);
  });
}

export function addResume(program: Command): void {
  const command = program.command('resume').argument('<run>', 'id of the run');
  addFarmOptions(command).action(async (runId: string, flags: Flags) => {
    await using farm = await openRun(runId, flags);
    const paused = await farm.groups.paused(runId);
    if (!paused || paused.reason === null) throw new UsageError(`run ${runId} is not paused`);
    await resumeRun(farm, runId);
    say(`run ${runId} is resumed; it was paused because: ${paused.reason}`);
  });
}

async function openRun(runId: string, flags: Flags): Promise<Farm> {
  const farm = await openFarmPatiently(producerConfig(flags));
  if (await farm.runs.exists(runId)) return farm;
  await farm[Symbol.asyncDispose]();
  throw new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists what there is`);
}
