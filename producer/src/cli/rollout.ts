/** `swefarm rollout`: submits a run, starts local workers and collects the results. Starts a Redis unless one is configured. */
import { UsageError } from '@swefarm/shared';
import { requireBundle } from './agentbundle.ts';
import { COLLECTION } from './collection.ts';
import { checkOnFarm, type DatasetRunValues, readDatasetRun, runDataset, runSets } from './datasetrun.ts';
import { command, flag, group, text } from './declare.ts';
import type { ExitCode } from './exit.ts';
import { describeHome, openHome } from './farm.ts';
import { GYM_CONFIG, readGymSettings } from './gymconfig.ts';
import { DATASET, FARM, RUN, WORKER_COMMAND, WORKER_RUNTIME } from './options.ts';
import { OUTPUT } from './outputs.ts';
import { prepareRun } from './prepare.ts';
import { listenForStop, type Stop } from './stop.ts';
import { printStatus } from './terminal.ts';
import { localWorkers, type WorkerValues } from './workers.ts';

export const rollout = command({
  options: {
    '--resume': flag('continue the run of an output file that exists (refused when settings differ)'),
    ...OUTPUT,
    ...DATASET,
    ...RUN,
    ...COLLECTION,
    ...WORKER_RUNTIME,
    ...group('Worker:', {
      '--concurrency <n>': text('rollouts at the same time; auto: what the machine allows'),
      '--apptainer-images <paths>': text('paths of .sif files, such as /sif/{instance_id}.sif'),
    }),
    ...WORKER_COMMAND,
    ...GYM_CONFIG,
    ...FARM,
  },
  example:
    'swefarm rollout --dataset rows.jsonl --policy-url http://localhost:8000/v1 --model MODEL --output results.jsonl',
  async run(o) {
    const stop = listenForStop(() =>
      printStatus(
        '\nswefarm: draining: running rollouts may end, no new ones start; Ctrl-C again stops at once',
      ),
    );
    if (o.set !== undefined && o.output === '-')
      throw new UsageError('--set writes a file for each set: add --output FILE.jsonl');
    const { run, worker, skipIfExists } = readGymSettings(o);
    const merged = {
      ...{ ...o, run, resume: o.resume || skipIfExists },
      concurrency: o.concurrency ?? worker.concurrency,
      runtime: o.runtime ?? worker.runtime,
      apptainerImages: o.apptainerImages ?? worker.apptainerImages,
    };
    return await runSets(merged, stop, (own) => runRollout(own, stop));
  },
});

type RolloutValues = DatasetRunValues & WorkerValues & { resume: boolean; output: string };

async function runRollout(given: RolloutValues, stop: Stop): Promise<ExitCode> {
  const { draining: signal } = stop;
  const run = await readDatasetRun(given, given.resume);
  const { o, config, stored } = run;
  if (stored) printStatus(`swefarm: resuming run ${stored.record.run_id}`);
  const read = await prepareRun(o, config, stored?.record ?? null, signal);
  await requireBundle(o, config, read.record);
  await using stack = new AsyncDisposableStack();
  const home = await openHome(config, read.record, stored, stack, signal);
  if (home.stateDir === null) for (const warning of home.farm.warnings) printStatus(`swefarm: ${warning}`);
  const prepared = await checkOnFarm(run, read, home.farm, { isNew: stored === null, signal });
  return await runDataset(run, prepared, home, {
    path: o.output,
    stop,
    workers: localWorkers(o, home),
    outputLines: (output) => describeHome(home, o.output, o.copyArtifacts, output),
    resumeHint:
      o.output === '-'
        ? 'this run cannot be resumed: that needs an --output file'
        : 'continue with: the same command and --resume',
  });
}
