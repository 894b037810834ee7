/** `swefarm submit`: queues rollouts for a farm whose workers run elsewhere; with --output it also collects the results. */
import { forecastRun, submit as queueRun, requireForecast, type Submitted } from '@swefarm/runs';
import { type Farm, type RunRecord, UsageError } from '@swefarm/shared';
import { renderForecast } from '../view/forecast.ts';
import { COLLECTION, orderOf } from './collection.ts';
import { checkOnFarm, type DatasetRunValues, readDatasetRun, runDataset, runSets } from './datasetrun.ts';
import { command, flag, textOrTrue } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { openFarmPatiently } from './farm.ts';
import { GYM_CONFIG, readGymSettings, warnOfWorkerSettings } from './gymconfig.ts';
import { DATASET, FARM, RUN } from './options.ts';
import { OPTIONAL_OUTPUT, requireSameRun } from './outputs.ts';
import { type PreparedRun, prepareRun } from './prepare.ts';
import { warnOfWorkers } from './session.ts';
import { listenForStop, type Stop } from './stop.ts';
import { print, printStatus } from './terminal.ts';
import { NO_WORKERS } from './workers.ts';

export const submit = command({
  options: {
    '--resume [run]': textOrTrue(
      'queue the missing rollouts of this run, or of the run of --output (refused when settings differ)',
    ),
    '--plan': flag('queue nothing: print the time, tokens and cost that the run is expected to need'),
    ...OPTIONAL_OUTPUT,
    ...DATASET,
    ...RUN,
    ...COLLECTION,
    ...GYM_CONFIG,
    ...FARM,
  },
  example:
    'swefarm submit --redis-url redis://farm:6379 --dataset rows.jsonl --policy-name main --model MODEL',
  async run(o) {
    const gym = readGymSettings(o);
    warnOfWorkerSettings(o.gymConfig, gym);
    if (o.plan && o.resume !== undefined)
      throw new UsageError('--plan forecasts a new run: leave out --resume');
    if (o.output === undefined) requireNothingWatched(o);
    if (o.output === '-')
      throw new UsageError('--output - is for swefarm collect; submit prints the id of the run there');
    const stop = listenForStop();
    if (o.set !== undefined && typeof o.resume === 'string') {
      throw new UsageError(
        `--resume ${o.resume} names one run, and --set makes several: leave out one of them`,
      );
    }
    const resume = o.resume ?? (gym.skipIfExists || undefined);
    return await runSets({ ...o, run: gym.run, resume }, stop, (own) => runSubmit(own, stop));
  },
});

type SubmitValues = DatasetRunValues & { plan: boolean; resume: string | true | undefined };

/** Options that queue rollouts depending on results. They need --output, because submit reads results only to write an output. */
const WATCHED = {
  untilResolved: '--until-resolved',
  budgetTokens: '--budget-tokens',
  budgetCost: '--budget-cost',
  budgetSeconds: '--budget-seconds',
  inFlight: '--in-flight',
  again: '--again',
} as const satisfies Partial<Record<keyof SubmitValues, string>>;

function requireNothingWatched(o: SubmitValues): void {
  if (o.resume === true)
    throw new UsageError(
      '--resume: name the run to continue, or with --output FILE continue the run of that file',
    );
  const keys = Object.keys(WATCHED) as (keyof typeof WATCHED)[];
  const given = keys.filter((key) => o[key] !== undefined);
  if (given.length === 0) return;
  throw new UsageError(
    `${given.map((key) => WATCHED[key]).join(', ')}: needs a command that reads the results while they come, and submit ends once all is queued; ` +
      'add --output FILE, with which submit stays until the run is done, or use swefarm rollout',
  );
}

async function runSubmit(given: SubmitValues, stop: Stop): Promise<ExitCode> {
  const { draining: signal } = stop;
  const run = await readDatasetRun(given, given.resume !== undefined);
  const { o, config, stored } = run;
  const runId = typeof o.resume === 'string' ? o.resume : stored?.record.run_id;
  // Files are checked before Redis, so that a wrong path is reported even without a Redis.
  const first = runId === undefined ? await prepareRun(o, config, null, signal) : null;
  await using farm = await openFarmPatiently(config, signal, { entrusts: true });
  for (const warning of farm.warnings) printStatus(`swefarm: ${warning}`);
  const read = first ?? (await prepareRun(o, config, await recordOf(farm, runId), signal));
  if (o.plan) {
    const { instances } = read.dataset;
    const known = await farm.history.read(read.record.agent, instances);
    const forecast = requireForecast(await forecastRun(farm, read.record, instances, known));
    await print(process.stdout.isTTY ? renderForecast(forecast) : JSON.stringify(forecast));
    return EXIT.allJudged;
  }
  const prepared = await checkOnFarm(run, read, farm, { isNew: first !== null, signal });
  if (o.output === undefined) return await submitOnly(farm, o, prepared, signal);
  requireSameRun(o.output, prepared.record.run_id, stored);
  return await runDataset(
    run,
    prepared,
    { farm, config, stateDir: null },
    {
      path: o.output,
      stop,
      workers: NO_WORKERS,
      outputLines: () => [`results: ${o.output}`],
      resumeHint: 'continue with: the same command and --resume',
    },
  );
}

async function recordOf(farm: Farm, runId = ''): Promise<RunRecord> {
  const record = await farm.runs.get(runId);
  if (record) return record;
  throw new UsageError(`--resume ${runId}: no such run at ${farm.address}; swefarm status lists all runs`);
}

async function submitOnly(
  farm: Farm,
  o: SubmitValues,
  { record, dataset, patches, known }: PreparedRun,
  signal: AbortSignal,
): Promise<ExitCode> {
  const instances = await orderOf(o, dataset.instances);
  await warnOfWorkers({ farm, record, instances }, NO_WORKERS);
  const submitted = await queueRun(
    farm,
    { record, instances, known, ...(patches ? { patches } : {}) },
    signal,
  );
  await printSubmitted(submitted, farm.address, o.tag);
  return EXIT.allJudged;
}

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
  printStatus(`${queued} of ${rollouts.length} rollouts queued at ${address}`);
  printStatus(`collect them with: swefarm collect ${run_id} --output ${run_id}.jsonl${named}`);
  await print(run_id);
}
