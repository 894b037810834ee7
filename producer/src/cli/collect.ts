/** `swefarm collect`: writes the results of a submitted run into a file or a pipe until it has all of them. */

import { rolloutIds } from '@swefarm/runs';
import { type Farm, type Instance, type ProducerConfig, type RunRecord, UsageError } from '@swefarm/shared';
import { type OutputFormat, type OutputRun, writeOutputRun } from '@swefarm/trajectories';
import type { Command } from 'commander';
import { markOf, outputRunOf, readPrice } from './collection.ts';
import type { ExitCode } from './exit.ts';
import { openFarmPatiently } from './farm.ts';
import { follow, openRunOutput } from './follow.ts';
import { addFarmOptions, type Flags, producerConfig, wholeNumber } from './options.ts';
import { addOutputOptions, readOutputFormat, readResumedRun } from './outputs.ts';
import { reportRunEnd } from './runend.ts';
import { listenForStop } from './stop.ts';
import { say } from './terminal.ts';

export function addCollect(program: Command): void {
  const command = program
    .command('collect')
    .argument('<run>', 'the id that submit printed')
    .option('--resume', 'continue an output file that exists');
  addOutputOptions(command)
    .option('--min-group <n>', 'judged rollouts that are enough for a group', wholeNumber)
    .option('--tag <tag>', 'the set of a collection that the run is: each line carries it');
  addFarmOptions(command).action(async (runId: string, flags: Flags) => {
    process.exitCode = await runCollect(runId, flags);
  });
}

async function runCollect(runId: string, flags: Flags): Promise<number> {
  const config = producerConfig(flags);
  const path = String(flags.output);
  const rows = readOutputFormat(flags);
  const stored = await readResumedRun(path, rows, flags.resume === true && path !== '-');
  requireSameRun(path, runId, stored);
  if (stored?.as_needed === true) {
    throw new UsageError(
      `${path}: its rollouts were queued as results came, which only the command that began it continues; give it again with --resume`,
    );
  }
  const stop = listenForStop(() =>
    say('swefarm: stopping once the results that are there are written; Ctrl-C again stops at once'),
  );
  await using farm = await openFarmPatiently(config, stop.draining);
  const record = await farm.runs.get(runId);
  if (!record) {
    throw new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists what there is`);
  }
  return await collectRun({
    farm,
    config,
    record,
    path,
    rows,
    minGroup: flags.minGroup as number | undefined,
    flags: { tag: stored?.tag, ...flags },
    signal: stop.draining,
  });
}

/** Throws UsageError when the output belongs to another run. */
export function requireSameRun(path: string, runId: string, stored: OutputRun | null): void {
  if (stored && stored.record.run_id !== runId) {
    throw new UsageError(
      `${path}: belongs to run ${stored.record.run_id}, not to ${runId}; choose another --output`,
    );
  }
}

type CollectRun = {
  farm: Farm;
  config: ProducerConfig;
  record: RunRecord;
  path: string;
  rows: OutputFormat;
  /** Overrides the value in the record. */
  minGroup: number | undefined;
  flags: Flags;
  signal: AbortSignal;
};

/** Writes a run's results until all are there or a signal comes, then prints the end of the run. */
async function collectRun(task: CollectRun): Promise<ExitCode> {
  const { farm, config, record, path, rows, flags, signal } = task;
  const runId = record.run_id;
  const instanceIds = await farm.runs.instanceIds(runId);
  const mark = markOf(flags.tag as string | undefined, readPrice(flags, config, record), null);
  if (path !== '-') await writeOutputRun(path, outputRunOf(record, null, rows, flags));
  await using output = await openRunOutput(path, rows, record, () => instancesOf(farm, runId, instanceIds));
  const { complete, unreadable } = await follow({
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
    mark,
    copyArtifactsTo: flags.copyArtifacts as string | undefined,
    signal,
  });
  return reportRunEnd({
    record,
    instanceIds,
    output,
    complete,
    unreadable,
    minGroup: task.minGroup ?? record.min_group ?? undefined,
    places: path === '-' ? [] : [`results: ${path}`],
    resumeHint: `continue with: swefarm collect ${runId} --output ${path} --output-format ${rows} --resume`,
  });
}

async function instancesOf(farm: Farm, runId: string, ids: readonly string[]): Promise<Instance[]> {
  const found: Instance[] = [];
  for (const id of ids) {
    const instance = await farm.runs.getInstance(runId, id);
    if (instance) found.push(instance);
  }
  return found;
}
