/** `swefarm collect`: the results of a run that was submitted, into a file or a pipe, until the last one is there. */
import { openFarm, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { readOutputRun, refuseExisting, writeOutputRun } from '../output.ts';
import { rolloutIds } from '../submit.ts';
import { finish } from './finish.ts';
import { follow, openOutput } from './follow.ts';
import { addFarmOptions, type Flags, producerConfig, wholeNumber } from './options.ts';
import { listenForStop } from './stop.ts';
import { say } from './terminal.ts';

export function addOutputOptions(command: Command): Command {
  return command
    .option('--output <file>', 'where result lines go, as JSONL; - is standard output', '-')
    .option('--copy-artifacts <dir>', 'copy trajectories and reports into this folder');
}

export function addCollect(program: Command): void {
  const command = program
    .command('collect')
    .description('write the results of a run as they come, each exactly once, until all are there')
    .argument('<run>', 'id that submit printed')
    .option('--resume', 'go on with an output that exists');
  addOutputOptions(command).option(
    '--min-group <n>',
    'so many judged rollouts are enough for a group',
    wholeNumber,
  );
  addFarmOptions(command).action(async (runId: string, flags: Flags) => {
    process.exitCode = await runCollect(runId, flags);
  });
}

async function runCollect(runId: string, flags: Flags): Promise<number> {
  const config = producerConfig(flags);
  const path = String(flags.output);
  await checkOutput(path, runId, flags.resume === true);
  const stop = listenForStop(() => say('swefarm: stopping after what is there; once more stops at once'));
  await using farm = await openFarm(config, 'producer', { signal: stop.draining });
  const record = await farm.runs.get(runId);
  if (!record) {
    throw new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists what there is`);
  }
  const instanceIds = await farm.runs.instanceIds(runId);
  if (path !== '-') await writeOutputRun(path, { format: 'swefarm-output-1', record, state_dir: null });
  await using output = await openOutput(path, runId);
  const { complete } = await follow({
    farm,
    config,
    runId,
    rollouts: new Set(
      rolloutIds(
        record,
        instanceIds.map((instance_id) => ({ instance_id })),
      ),
    ),
    output,
    growing: record.refills > 0,
    copyArtifactsTo: flags.copyArtifacts as string | undefined,
    signal: stop.draining,
  });
  return finish({
    record,
    instanceIds,
    output,
    complete,
    minGroup: (flags.minGroup as number | undefined) ?? record.min_group ?? undefined,
    places: path === '-' ? [] : [`results: ${path}`],
    resumeHint: `go on with: swefarm collect ${runId} --output ${path} --resume`,
  });
}

async function checkOutput(path: string, runId: string, resume: boolean): Promise<void> {
  if (path === '-') return;
  if (!resume) return await refuseExisting(path);
  const stored = await readOutputRun(path);
  if (stored && stored.record.run_id !== runId) {
    throw new UsageError(
      `${path}: belongs to run ${stored.record.run_id}, not to ${runId}; choose another --output`,
    );
  }
}
