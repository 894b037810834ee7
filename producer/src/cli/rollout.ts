/** `swefarm rollout`: submits, runs a local worker and collects, in one command; starts its own Redis when none is given. */
import type { Command } from 'commander';
import type { Collected } from '../output/collect.ts';
import { writeOutputRun } from '../output/output.ts';
import { withDeadline } from '../run/deadline.ts';
import type { ExitCode } from '../run/exit.ts';
import { rolloutIds, staleLimitWarning } from '../run/submit.ts';
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
import { prepareRun, storeApiKey } from './prepare.ts';
import { reportRunEnd } from './runend.ts';
import { listenForStop } from './stop.ts';
import { say } from './terminal.ts';
import { requireTrainableEndpoints } from './tokencheck.ts';

export function addRollout(program: Command): void {
  const command = program
    .command('rollout')
    .description(
      'run the rollouts of a dataset on this machine: submit them, start a local worker, collect the results',
    )
    .option('--resume', 'continue the run of an output file that exists (refused when settings differ)');
  addOutputOptions(command);
  addDatasetOptions(command);
  addRunOptions(command);
  addWorkerOptions(
    command,
    ['--concurrency <n>', 'rollouts at the same time; auto: what the machine allows'],
    ['--apptainer-images <paths>', 'paths of .sif files, such as /sif/{instance_id}.sif'],
  );
  addGymConfig(command);
  addFarmOptions(command).action(async (flags: Flags) => {
    process.exitCode = await runRollout(withGymConfig(flags));
  });
}

async function runRollout(flags: Flags): Promise<ExitCode> {
  const path = String(flags.output);
  const rows = readOutputFormat(flags);
  const given = producerConfig(flags);
  const stop = listenForStop(() =>
    say('\nswefarm: draining: running rollouts may end, no new ones start; Ctrl-C again stops at once'),
  );
  const stored = await readResumedRun(path, rows, flags.resume === true || flags.skipIfExists === true);
  if (stored) say(`swefarm: resuming run ${stored.record.run_id}`);
  const prepared = await prepareRun(flags, given, stored?.record ?? null, stop.draining);

  await using stack = new AsyncDisposableStack();
  const place = await openRunFolder(given, prepared.record, stored, stack, stop.draining);
  const farm = stack.use(await openFarmPatiently(place.config, stop.draining, { entrusts: true }));
  if (place.stateDir === null) for (const warning of farm.warnings) say(`swefarm: ${warning}`);
  const record = stored ? prepared.record : await withDeadline(prepared.record, flags.deadline, farm);
  await requireTrainableEndpoints(farm, {
    record,
    instances: prepared.dataset.instances,
    apiKey: prepared.apiKey,
    acceptRawLogprobs: flags.acceptRawLogprobs === true,
    signal: stop.draining,
  });
  if (path !== '-') {
    await writeOutputRun(path, { format: 'swefarm-output-1', record, state_dir: place.stateDir, rows });
  }
  const idle = await staleLimitWarning(record, farm);
  if (idle) say(`swefarm: ${idle}`);
  const output = stack.use(await openRunOutput(path, rows, record, async () => prepared.dataset.instances));
  await storeApiKey(farm, place.config, prepared);
  const end = ({ complete, unreadable }: Collected): ExitCode =>
    reportRunEnd({
      record,
      instanceIds: prepared.dataset.instances.map((instance) => instance.instance_id),
      output,
      complete,
      unreadable,
      minGroup: prepared.minGroup,
      places: describeRunFolder(path, place, flags),
      resumeHint:
        path === '-'
          ? 'this run cannot be resumed: that needs an --output file'
          : 'continue with: the same command and --resume',
    });
  try {
    const { instances } = prepared.dataset;
    const rollouts = new Set(rolloutIds(record, instances));
    const { patches } = prepared;
    return end(await runLocally({ farm, output, record, instances, patches, rollouts, flags, place, stop }));
  } catch (error) {
    end({ complete: false, unreadable: [] });
    throw error;
  }
}
