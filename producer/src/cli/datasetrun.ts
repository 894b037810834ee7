/** Steps that `rollout` and `submit` share: read the options of a run, check them on the farm, queue, collect and report. */
import { weightWarnings } from '@swefarm/grading';
import { forecastRun, rolloutIds, runSettings, staleLimitWarning, withDeadline } from '@swefarm/runs';
import type { Farm, ProducerConfig } from '@swefarm/shared';
import type { Collected, Output, OutputRun } from '@swefarm/trajectories';
import { parseSets, taggedPath } from '../collection/sets.ts';
import { type Again, type CollectionValues, openCollection, outputRunOf, readAgain } from './collection.ts';
import type { Values } from './declare.ts';
import { readDrawnRun } from './drawnrun.ts';
import { requireFitEndpoints } from './endpointcheck.ts';
import { EXIT, type ExitCode } from './exit.ts';
import type { Home } from './farm.ts';
import { producerConfig } from './options.ts';
import { checkOutputFormat, type OPTIONAL_OUTPUT, openRunOutput, readResumedRun } from './outputs.ts';
import { type PreparedRun, type PrepareValues, storeApiKey } from './prepare.ts';
import { reportRunEnd } from './runend.ts';
import { runSession } from './session.ts';
import type { Stop } from './stop.ts';
import { printStatus } from './terminal.ts';
import { type LocalWorkers, NO_WORKERS } from './workers.ts';

export type DatasetRunValues = PrepareValues & CollectionValues & Values<typeof OPTIONAL_OUTPUT>;

/** Runs the sets (`--set`) one after the other. Returns the worst exit code; an interruption ends the remaining sets. */
export async function runSets<O extends Pick<DatasetRunValues, 'set' | 'run' | 'output'>>(
  o: O,
  stop: Stop,
  runOne: (own: O & { tag?: string }) => Promise<ExitCode>,
): Promise<ExitCode> {
  if (o.set === undefined) return await runOne(o);
  let worst: ExitCode = EXIT.allJudged;
  for (const [at, { tag, flags }] of parseSets(o.set).entries()) {
    if (at > 0 && stop.draining.aborted) return EXIT.interrupted;
    printStatus(`swefarm: set ${tag}`);
    const output = o.output === undefined ? undefined : taggedPath(o.output, tag);
    const code = await runOne({ ...o, run: { ...o.run, ...flags }, tag, output });
    if (code === EXIT.interrupted) return code;
    if (code > worst) worst = code;
  }
  return worst;
}

/** Options and earlier outputs of a run, read before the farm is opened. */
export type DatasetRun<O extends DatasetRunValues = DatasetRunValues> = {
  o: O;
  again: Again | null;
  config: ProducerConfig;
  /** Stored run of the output to resume; null: a new run. */
  stored: OutputRun | null;
};

/** Reads the configuration and the outputs that the options name. Throws UsageError. */
export async function readDatasetRun<O extends DatasetRunValues>(
  given: O,
  resume: boolean,
): Promise<DatasetRun<O>> {
  const { o, again } = await readAgain(given);
  checkOutputFormat(o.outputFormat, o.output);
  const stored = o.output === undefined ? null : await readResumedRun(o.output, o.outputFormat, resume);
  return { o, again, config: producerConfig(o), stored };
}

/** Returns the deadline as it was given, because a span counts from the clock of Redis. */
const deadlineOf = ({ run, runConfig }: PrepareValues): unknown =>
  run.deadline ?? runSettings({ flags: {}, configFile: runConfig }).deadline_at;

/**
 * Sets the deadline of a new run by the farm's clock and its forecast, tries the endpoints and stores the API key.
 *
 * @throws UsageError; UnusableError for endpoints that do not fit the run
 */
export async function checkOnFarm(
  { o, config }: { o: PrepareValues; config: ProducerConfig },
  prepared: PreparedRun,
  farm: Farm,
  { isNew, signal }: { isNew: boolean; signal: AbortSignal },
): Promise<PreparedRun> {
  const { instances } = prepared.dataset;
  const known = isNew ? await farm.history.read(prepared.record.agent, instances) : undefined;
  const record = known
    ? {
        ...(await withDeadline(prepared.record, deadlineOf(o), farm)),
        forecast: await forecastRun(farm, prepared.record, instances, known),
      }
    : prepared.record;
  await requireFitEndpoints(farm, {
    record,
    instances,
    apiKey: prepared.apiKey,
    acceptRawLogprobs: o.acceptRawLogprobs,
    probes: o.probe,
    signal,
  });
  const idle = await staleLimitWarning(record, farm);
  for (const warning of [...(idle ? [idle] : []), ...weightWarnings(record.reward.weights)])
    printStatus(`swefarm: ${warning}`);
  await storeApiKey(farm, config, prepared);
  return { ...prepared, record, known };
}

export type DatasetWork = {
  path: string;
  stop: Stop;
  workers: LocalWorkers;
  outputLines: (output: Output) => string[];
  resumeHint: string;
};

/** Opens the output, queues the missing rollouts, collects the results and, also after an error, prints a summary. */
export async function runDataset(
  { o, again }: DatasetRun,
  { record, dataset, patches, minGroup, known }: PreparedRun,
  { farm, config, stateDir }: Pick<Home, 'farm' | 'config' | 'stateDir'>,
  { path, stop, workers, outputLines, resumeHint }: DatasetWork,
): Promise<ExitCode> {
  const run = outputRunOf(record, stateDir, o.outputFormat, o);
  await using output = await openRunOutput(path, run, async () => dataset.instances);
  const collection = await openCollection({ farm, config, record, output }, dataset.instances, o, again);
  const { instances, rollouts } = collection;
  if (workers === NO_WORKERS) {
    const open = [...rollouts].filter((id) => !output.lines.has(id)).length;
    const queued =
      record.until === null
        ? `${open} of ${rolloutIds(record, instances).length} rollouts queued`
        : `draws groups until ${record.until.groups} are selected`;
    printStatus(`swefarm: run ${record.run_id}: ${queued}`);
  }
  const end = async (collected: Collected): Promise<ExitCode> =>
    reportRunEnd({
      // After an error of Redis, the summary contains what the output contains.
      drawn: await readDrawnRun(farm, record).catch(() => null),
      ...{ record, output, minGroup, resumeHint, ...collected },
      instanceIds: instances.map(({ instance_id: id }) => id),
      queued: collection.queued(),
      outputLines: outputLines(output),
    });
  try {
    const shared = { farm, config, record, patches, known, output, stop, workers };
    return await end(await runSession({ ...shared, ...collection, copyArtifactsTo: o.copyArtifacts }));
  } catch (error) {
    await end({ complete: false, unreadable: [] });
    throw error;
  }
}
