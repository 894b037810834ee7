/** `swefarm submit`: queues rollouts for a farm whose workers run elsewhere; with --output it also collects the results. */

import {
  rolloutIds,
  type Submitted,
  staleLimitWarning,
  submit,
  withDeadline,
  workerWarnings,
} from '@swefarm/runs';
import { type Farm, type ProducerConfig, UsageError } from '@swefarm/shared';
import { type OutputFormat, type OutputRun, writeOutputRun } from '@swefarm/trajectories';
import type { Command } from 'commander';
import { parseSets, taggedPath } from '../collection/sets.ts';
import { requireSameRun } from './collect.ts';
import {
  type Again,
  addCollectionOptions,
  checkCollection,
  openCollection,
  orderOf,
  outputRunOf,
  readAgain,
  withGroupSize,
} from './collection.ts';
import { requireFitEndpoints } from './endpointcheck.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { openFarmPatiently } from './farm.ts';
import { openRunOutput } from './follow.ts';
import { addGymConfig, withGymConfig } from './gymconfig.ts';
import { runLocally } from './local.ts';
import { addDatasetOptions, addFarmOptions, addRunOptions, type Flags, producerConfig } from './options.ts';
import { addOptionalOutput, readOutputFormat, readResumedRun } from './outputs.ts';
import { type PreparedRun, prepareRun, storeApiKey } from './prepare.ts';
import { reportRunEnd } from './runend.ts';
import { listenForStop, type Stop } from './stop.ts';
import { print, say } from './terminal.ts';

export function addSubmit(program: Command): void {
  const command = program
    .command('submit')
    .option(
      '--resume [run]',
      'queue the missing rollouts of this run, or of the run of --output (refused when settings differ)',
    );
  addOptionalOutput(command);
  addDatasetOptions(command);
  addRunOptions(command);
  addCollectionOptions(command);
  addGymConfig(command);
  addFarmOptions(command).action(async (flags: Flags) => {
    process.exitCode = await runSets(withGymConfig(flags, false));
  });
}

/** One run for each set; the worst exit code. */
async function runSets(given: Flags): Promise<ExitCode> {
  const output = given.output as string | undefined;
  if (output === undefined) requireNothingWatched(given);
  if (output === '-')
    throw new UsageError('--output - is for swefarm collect; submit prints the id of the run there');
  const stop = listenForStop();
  if (given.set === undefined) return await runSubmit(given, stop);
  if (typeof given.resume === 'string') {
    throw new UsageError(
      `--resume ${given.resume} names one run, and --set makes several: leave out one of them`,
    );
  }
  let worst: ExitCode = EXIT.allJudged;
  for (const { tag, flags } of parseSets(given.set as string[])) {
    say(`swefarm: set ${tag}`);
    const path = output === undefined ? {} : { output: taggedPath(output, tag) };
    const code = await runSubmit({ ...given, ...flags, ...path, tag }, stop);
    if (code === EXIT.interrupted || stop.draining.aborted) return EXIT.interrupted;
    worst = Math.max(worst, code) as ExitCode;
  }
  return worst;
}

/** Options by which results decide what is queued: without an output nobody reads results. */
const WATCHED = {
  untilResolved: '--until-resolved',
  budgetTokens: '--budget-tokens',
  budgetCost: '--budget-cost',
  budgetSeconds: '--budget-seconds',
  inFlight: '--in-flight',
  again: '--again',
} as const;

function requireNothingWatched(flags: Flags): void {
  if (flags.resume === true)
    throw new UsageError(
      '--resume: name the run to continue, or with --output FILE continue the run of that file',
    );
  const given = Object.entries(WATCHED).filter(([key]) => flags[key] !== undefined);
  if (given.length === 0) return;
  const names = given.map(([, flag]) => flag).join(', ');
  throw new UsageError(
    `${names}: needs a command that reads the results while they come, and submit ends once all is queued; ` +
      'add --output FILE, with which submit stays until the run is done, or use swefarm rollout',
  );
}

async function runSubmit(requested: Flags, stop: Stop): Promise<ExitCode> {
  const watching = requested.output !== undefined;
  const again = await readAgain(requested);
  const given = withGroupSize(requested, again);
  const config = producerConfig(given);
  const output = given.output as string | undefined;
  const rows = readOutputFormat(given);
  const resumed = given.resume !== undefined || given.skipIfExists === true;
  const stored = output === undefined ? null : await readResumedRun(output, rows, resumed);
  const runId = typeof given.resume === 'string' ? given.resume : stored?.record.run_id;
  const flags: Flags = { ...given, resume: runId };
  // Files are checked before Redis, so that a wrong path is reported even without a Redis.
  const first = runId === undefined ? await prepareRun(flags, config, null, stop.draining) : null;
  if (first) checkCollection(flags, config, first.record);
  await using farm = await openFarmPatiently(config, stop.draining, { entrusts: true });
  for (const warning of farm.warnings) say(`swefarm: ${warning}`);
  const prepared = first
    ? { ...first, record: await withDeadline(first.record, flags.deadline, farm) }
    : await prepareResumed(farm, flags, config, stop.draining);
  checkCollection(flags, config, prepared.record);
  await checkFarm(farm, flags, prepared, stop.draining);
  await storeApiKey(farm, config, prepared);
  const submission = { farm, config, flags, again, rows, stored, prepared, stop };
  if (watching && output !== undefined) {
    requireSameRun(output, prepared.record.run_id, stored);
    return await submitAndCollect({ ...submission, path: output });
  }
  return await submitOnly(submission);
}

/** Throws UsageError for endpoints that do not fit the run; warns of what has no effect. */
async function checkFarm(
  farm: Farm,
  flags: Flags,
  { record, dataset, apiKey }: PreparedRun,
  signal: AbortSignal,
): Promise<void> {
  await requireFitEndpoints(farm, {
    record,
    instances: dataset.instances,
    apiKey,
    acceptRawLogprobs: flags.acceptRawLogprobs === true,
    probes: flags.probe !== false,
    signal,
  });
  const idle = await staleLimitWarning(record, farm);
  if (idle) say(`swefarm: ${idle}`);
  for (const warning of await workerWarnings(dataset.instances, record, farm)) say(`swefarm: ${warning}`);
}

type Submission = {
  farm: Farm;
  config: ProducerConfig;
  flags: Flags;
  again: Again | null;
  rows: OutputFormat;
  stored: OutputRun | null;
  prepared: PreparedRun;
  stop: Stop;
};

async function submitOnly({ farm, flags, prepared, stop }: Submission): Promise<ExitCode> {
  const { record, dataset, patches } = prepared;
  const instances = await orderOf(flags, dataset.instances);
  const submitted = await submit(farm, { record, instances, ...(patches ? { patches } : {}) }, stop.draining);
  await printSubmitted(submitted, farm.address, flags.tag as string | undefined);
  return EXIT.allJudged;
}

/** As `rollout` does it, with the workers of the farm in place of local ones. */
async function submitAndCollect(submission: Submission & { path: string }): Promise<ExitCode> {
  const { farm, config, flags, again, rows, prepared, path, stop } = submission;
  const { record, dataset, patches } = prepared;
  await writeOutputRun(path, outputRunOf(record, null, rows, flags));
  await using output = await openRunOutput(path, rows, record, async () => dataset.instances);
  const given = { flags, config, record, instances: dataset.instances, output, again };
  const collection = await openCollection(farm, given);
  const open = [...collection.rollouts].filter((id) => !output.lines.has(id)).length;
  say(
    `swefarm: run ${record.run_id}: ${open} of ${rolloutIds(record, dataset.instances).length} rollouts queued`,
  );
  const place = { config, stateDir: null, logDir: '' };
  const { complete, unreadable } = await runLocally({
    ...{ ...collection, farm, output, record, patches, place, stop },
    flags: { ...flags, localWorker: false },
  });
  return reportRunEnd({
    record,
    instanceIds: dataset.instances.map(({ instance_id: id }) => id),
    output,
    complete,
    unreadable,
    minGroup: prepared.minGroup,
    queued: collection.queued(),
    places: [`results: ${path}`],
    resumeHint: 'continue with: the same command and --resume',
  });
}

/** The run to extend, compared with the flags. Throws UsageError when it does not exist or its settings differ. */
async function prepareResumed(
  farm: Farm,
  flags: Flags,
  config: ProducerConfig,
  signal: AbortSignal,
): Promise<PreparedRun> {
  const runId = String(flags.resume);
  const record = await farm.runs.get(runId);
  if (!record) {
    throw new UsageError(
      `--resume ${runId}: no such run at ${farm.address}; swefarm status lists what there is`,
    );
  }
  return await prepareRun(flags, config, record, signal);
}

/** Prints the next step for a person, or id and counts as JSON for a script. */
async function printSubmitted(
  { run_id, rollouts, queued }: Submitted,
  address: string,
  tag: string | undefined,
): Promise<void> {
  const named = tag === undefined ? '' : ` --tag ${tag}`;
  if (!process.stdout.isTTY) {
    await print(
      JSON.stringify({ run_id, ...(tag === undefined ? {} : { tag }), rollouts: rollouts.length, queued }),
    );
    return;
  }
  say(`${queued} of ${rollouts.length} rollouts queued at ${address}`);
  say(`collect them with: swefarm collect ${run_id} --output ${run_id}.jsonl${named}`);
  await print(run_id);
}
