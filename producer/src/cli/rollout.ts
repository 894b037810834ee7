/** `swefarm rollout`: submits, runs a local worker and collects, in one command; starts its own Redis when none is given. */

import { staleLimitWarning, withDeadline } from '@swefarm/runs';
import { type Farm, type ProducerConfig, type RunRecord, UsageError } from '@swefarm/shared';
import type { Collected } from '@swefarm/trajectories';
import { type Output, type OutputFormat, type OutputRun, writeOutputRun } from '@swefarm/trajectories';
import type { Command } from 'commander';
import { parseSets, taggedPath } from '../collection/sets.ts';
import {
  type Again,
  addCollectionOptions,
  checkCollection,
  openCollection,
  outputRunOf,
  readAgain,
  withGroupSize,
} from './collection.ts';
import { requireFitEndpoints } from './endpointcheck.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { openFarmPatiently } from './farm.ts';
import { openRunOutput } from './follow.ts';
import { addGymConfig, withGymConfig } from './gymconfig.ts';
import { describeRunFolder, openRunFolder, runLocally } from './local.ts';
import {
  addDatasetOptions,
  addFarmOptions,
  addRunOptions,
  addWorkerOptions,
  type Flags,
  producerConfig,
} from './options.ts';
import { addOutputOptions, readOutputFormat, readResumedRun } from './outputs.ts';
import { type PreparedRun, prepareRun, storeApiKey } from './prepare.ts';
import { reportRunEnd } from './runend.ts';
import { listenForStop, type Stop } from './stop.ts';
import { say } from './terminal.ts';

export function addRollout(program: Command): void {
  const command = program
    .command('rollout')
    .option('--resume', 'continue the run of an output file that exists (refused when settings differ)');
  addOutputOptions(command);
  addDatasetOptions(command);
  addRunOptions(command);
  addCollectionOptions(command);
  addWorkerOptions(
    command,
    ['--concurrency <n>', 'rollouts at the same time; auto: what the machine allows'],
    ['--apptainer-images <paths>', 'paths of .sif files, such as /sif/{instance_id}.sif'],
  );
  addGymConfig(command);
  addFarmOptions(command).action(async (flags: Flags) => {
    process.exitCode = await runSets(withGymConfig(flags));
  });
}

/** One run for each set, one after the other; the worst exit code, and none after an interruption. */
async function runSets(flags: Flags): Promise<ExitCode> {
  const stop = listenForStop(() =>
    say('\nswefarm: draining: running rollouts may end, no new ones start; Ctrl-C again stops at once'),
  );
  if (flags.set === undefined) return await runRollout(flags, stop);
  const sets = parseSets(flags.set as string[]);
  if (flags.output === '-') throw new UsageError('--set writes a file for each set: add --output FILE.jsonl');
  let worst: ExitCode = EXIT.allJudged;
  for (const { tag, flags: own } of sets) {
    say(`swefarm: set ${tag}`);
    const path = taggedPath(String(flags.output), tag);
    const code = await runRollout({ ...flags, ...own, tag, output: path }, stop);
    if (code === EXIT.interrupted) return code;
    worst = Math.max(worst, code) as ExitCode;
  }
  return worst;
}

async function runRollout(requested: Flags, stop: Stop): Promise<ExitCode> {
  const again = await readAgain(requested);
  const flags = withGroupSize(requested, again);
  const path = String(flags.output);
  const rows = readOutputFormat(flags);
  const given = producerConfig(flags);
  const stored = await readResumedRun(path, rows, flags.resume === true || flags.skipIfExists === true);
  if (stored) say(`swefarm: resuming run ${stored.record.run_id}`);
  const prepared = await prepareRun(flags, given, stored?.record ?? null, stop.draining);
  checkCollection(flags, given, prepared.record);
  return await runPrepared({ flags, again, path, rows, given, stored, prepared }, stop);
}

type Prepared = {
  flags: Flags;
  again: Again | null;
  path: string;
  rows: OutputFormat;
  given: ProducerConfig;
  stored: OutputRun | null;
  prepared: PreparedRun;
};

async function runPrepared(task: Prepared, stop: Stop): Promise<ExitCode> {
  const { flags, again, path, rows, given, stored, prepared } = task;
  await using stack = new AsyncDisposableStack();
  const place = await openRunFolder(given, prepared.record, stored, stack, stop.draining);
  const farm = stack.use(await openFarmPatiently(place.config, stop.draining, { entrusts: true }));
  if (place.stateDir === null) for (const warning of farm.warnings) say(`swefarm: ${warning}`);
  const record = stored ? prepared.record : await withDeadline(prepared.record, flags.deadline, farm);
  await requireEndpoints(farm, task, record, stop.draining);
  await storeRun(task, record, place.stateDir);
  const idle = await staleLimitWarning(record, farm);
  if (idle) say(`swefarm: ${idle}`);
  const output = stack.use(await openRunOutput(path, rows, record, async () => prepared.dataset.instances));
  await storeApiKey(farm, place.config, prepared);
  const collection = await openCollection(farm, {
    flags,
    config: given,
    record,
    instances: prepared.dataset.instances,
    output,
    again,
  });
  const end = ({ complete, unreadable }: Collected): ExitCode =>
    reportRunEnd({
      record,
      instanceIds: prepared.dataset.instances.map((instance) => instance.instance_id),
      output,
      complete,
      unreadable,
      minGroup: prepared.minGroup,
      queued: collection.queued(),
      places: describeRunFolder(path, place, flags, exampleOf(output)),
      resumeHint:
        path === '-'
          ? 'this run cannot be resumed: that needs an --output file'
          : 'continue with: the same command and --resume',
    });
  try {
    const { patches } = prepared;
    return end(await runLocally({ ...collection, farm, output, record, patches, flags, place, stop }));
  } catch (error) {
    end({ complete: false, unreadable: [] });
    throw error;
  }
}

/** `INSTANCE.INDEX` of a line. */
const exampleOf = ({ lines }: Output): string | null =>
  lines.keys().next().value?.split('.').slice(1).join('.') ?? null;

async function storeRun(
  { path, rows, flags }: Prepared,
  record: RunRecord,
  stateDir: string | null,
): Promise<void> {
  if (path === '-') return;
  await writeOutputRun(path, outputRunOf(record, stateDir, rows, flags));
}

const requireEndpoints = (
  farm: Farm,
  { flags, prepared }: Prepared,
  record: RunRecord,
  signal: AbortSignal,
): Promise<void> =>
  requireFitEndpoints(farm, {
    record,
    instances: prepared.dataset.instances,
    apiKey: prepared.apiKey,
    acceptRawLogprobs: flags.acceptRawLogprobs === true,
    probes: flags.probe !== false,
    signal,
  });
