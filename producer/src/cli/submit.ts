/** `swefarm submit`: queues rollouts for a farm whose workers run elsewhere; with --output it also collects the results. */
import { type Farm, type ProducerConfig, UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { withDeadline } from '../run/deadline.ts';
import { EXIT } from '../run/exit.ts';
import { type Submitted, staleLimitWarning, submit } from '../run/submit.ts';
import { workerWarnings } from '../run/workerneeds.ts';
import { collectRun, requireSameRun } from './collect.ts';
import { requireFitEndpoints } from './endpointcheck.ts';
import { openFarmPatiently } from './farm.ts';
import { addGymConfig, withGymConfig } from './gymconfig.ts';
import { addDatasetOptions, addFarmOptions, addRunOptions, type Flags, producerConfig } from './options.ts';
import { addOptionalOutput, readOutputFormat, readResumedRun } from './outputs.ts';
import { type PreparedRun, prepareRun, storeApiKey } from './prepare.ts';
import { listenForStop } from './stop.ts';
import { print, say } from './terminal.ts';

export function addSubmit(program: Command): void {
  const command = program
    .command('submit')
    .option('--resume <run>', 'queue the missing rollouts of this run (refused when settings differ)');
  addOptionalOutput(command);
  addDatasetOptions(command);
  addRunOptions(command);
  addGymConfig(command);
  addFarmOptions(command).action(async (flags: Flags) => {
    process.exitCode = await runSubmit(withGymConfig(flags, false));
  });
}

async function runSubmit(given: Flags): Promise<number> {
  const config = producerConfig(given);
  const output = given.output as string | undefined;
  if (output === '-')
    throw new UsageError('--output - is for swefarm collect; submit prints the id of the run there');
  const rows = readOutputFormat(given);
  const again = given.resume !== undefined || given.skipIfExists === true;
  const stored = output === undefined ? null : await readResumedRun(output, rows, again);
  const flags = stored && given.resume === undefined ? { ...given, resume: stored.record.run_id } : given;
  const stop = listenForStop();
  // Files are checked before Redis, so that a wrong path is reported even without a Redis.
  const first = flags.resume === undefined ? await prepareRun(flags, config, null, stop.draining) : null;
  await using farm = await openFarmPatiently(config, stop.draining, { entrusts: true });
  for (const warning of farm.warnings) say(`swefarm: ${warning}`);
  const prepared = first
    ? { ...first, record: await withDeadline(first.record, flags.deadline, farm) }
    : await prepareResumed(farm, flags, config, stop.draining);
  await requireFitEndpoints(farm, {
    record: prepared.record,
    instances: prepared.dataset.instances,
    apiKey: prepared.apiKey,
    acceptRawLogprobs: flags.acceptRawLogprobs === true,
    signal: stop.draining,
  });
  const idle = await staleLimitWarning(prepared.record, farm);
  if (idle) say(`swefarm: ${idle}`);
  for (const warning of await workerWarnings(prepared.dataset.instances, prepared.record, farm))
    say(`swefarm: ${warning}`);
  await storeApiKey(farm, config, prepared);
  const { record, dataset, patches } = prepared;
  const submitted = await submit(
    farm,
    { record, instances: dataset.instances, ...(patches ? { patches } : {}) },
    stop.draining,
  );
  if (output !== undefined) {
    requireSameRun(output, record.run_id, stored);
    say(`swefarm: run ${record.run_id}: ${submitted.queued} of ${submitted.rollouts.length} rollouts queued`);
    return await collectRun({
      farm,
      config,
      record,
      path: output,
      rows,
      minGroup: prepared.minGroup,
      flags,
      signal: stop.draining,
    });
  }
  await printSubmitted(submitted, farm.address);
  return EXIT.allJudged;
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
async function printSubmitted({ run_id, rollouts, queued }: Submitted, address: string): Promise<void> {
  if (!process.stdout.isTTY) {
    await print(JSON.stringify({ run_id, rollouts: rollouts.length, queued }));
    return;
  }
  say(`${queued} of ${rollouts.length} rollouts queued at ${address}`);
  say(`collect them with: swefarm collect ${run_id} --output ${run_id}.jsonl`);
  await print(run_id);
}
