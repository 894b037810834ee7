/** What `rollout` and `submit` do alike: one run for each set, its output read, its farm and endpoints checked, its session opened. */

import type { RunFlagValues } from '@swefarm/runs';
import { staleLimitWarning, withDeadline } from '@swefarm/runs';
import type { Farm, ProducerConfig } from '@swefarm/shared';
import type { Collected, OutputFormat, OutputRun } from '@swefarm/trajectories';
import { parseSets, taggedPath } from '../collection/sets.ts';
import {
  type Again,
  type Collection,
  type CollectionValues,
  checkCollection,
  groupSizeOf,
  openCollection,
  outputRunOf,
  readAgain,
} from './collection.ts';
import { requireFitEndpoints } from './endpointcheck.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { producerConfig } from './options.ts';
import { checkOutputFormat, openRunOutput, readResumedRun } from './outputs.ts';
import { type PreparedRun, type PrepareValues, prepareRun, storeApiKey } from './prepare.ts';
import { reportRunEnd } from './runend.ts';
import { runSession, type Session } from './session.ts';
import type { Stop } from './stop.ts';
import { say } from './terminal.ts';
import type { LocalWorkers } from './workers.ts';

export type DatasetRunValues = PrepareValues &
  CollectionValues & {
    output: string | undefined;
    outputFormat: OutputFormat;
    copyArtifacts: string | undefined;
  };

type SetValues = { set: string[] | undefined; run: RunFlagValues; output: string | undefined };

/** One run for each `--set`, one after the other; the worst exit code, and no further run after an interruption. */
export async function runSets<O extends SetValues>(
  o: O,
  stop: Stop,
  runOne: (own: O & { tag?: string }) => Promise<ExitCode>,
): Promise<ExitCode> {
  if (o.set === undefined) return await runOne(o);
  let worst: ExitCode = EXIT.allJudged;
  for (const [at, { tag, flags }] of parseSets(o.set).entries()) {
    if (at > 0 && stop.draining.aborted) return EXIT.interrupted;
    say(`swefarm: set ${tag}`);
    const output = o.output === undefined ? undefined : taggedPath(o.output, tag);
    const code = await runOne({ ...o, run: { ...o.run, ...flags }, tag, output });
    if (code === EXIT.interrupted) return code;
    if (code > worst) worst = code;
  }
  return worst;
}

/** A run before its farm is opened. */
export type DatasetRun<O extends DatasetRunValues = DatasetRunValues> = {
  o: O;
  again: Again | null;
  config: ProducerConfig;
  /** The run of the output that is resumed. */
  stored: OutputRun | null;
};

/** Reads what stands on disk beside the dataset. Throws UsageError. */
export async function readDatasetRun<O extends DatasetRunValues>(
  given: O,
  resume: boolean,
): Promise<DatasetRun<O>> {
  const again = await readAgain(given);
  const groupSize = groupSizeOf(given, given.run.groupSize, again);
  const o = groupSize === undefined ? given : { ...given, run: { ...given.run, groupSize } };
  checkOutputFormat(o.outputFormat, o.output);
  const config = producerConfig(o);
  const stored = o.output === undefined ? null : await readResumedRun(o.output, o.outputFormat, resume);
  return { o, again, config, stored };
}

/** {@link prepareRun} for a collection. Throws UsageError. */
export async function prepareDatasetRun(
  { o, config }: DatasetRun,
  resumed: PreparedRun['record'] | null,
  signal: AbortSignal,
): Promise<PreparedRun> {
  const prepared = await prepareRun(o, config, resumed, signal);
  checkCollection(o, config, prepared.record);
  return prepared;
}

/**
 * The record as it is queued: its deadline by the farm's clock, its endpoints tried, its key stored.
 *
 * @throws UsageError; UnusableError for endpoints that do not fit the run
 */
export async function checkOnFarm(
  { o, config }: DatasetRun,
  prepared: PreparedRun,
  farm: Farm,
  { isNew, signal }: { isNew: boolean; signal: AbortSignal },
): Promise<PreparedRun> {
  const record = isNew ? await withDeadline(prepared.record, o.run.deadline, farm) : prepared.record;
  await requireFitEndpoints(farm, {
    record,
    instances: prepared.dataset.instances,
    apiKey: prepared.apiKey,
    acceptRawLogprobs: o.acceptRawLogprobs,
    probes: o.probe,
    signal,
  });
  const idle = await staleLimitWarning(record, farm);
  if (idle) say(`swefarm: ${idle}`);
  await storeApiKey(farm, config, prepared);
  return { ...prepared, record };
}

type Opened = { farm: Farm; config: ProducerConfig; stateDir: string | null; prepared: PreparedRun };

/** Opens output and collection of a run that is about to be queued. Throws UsageError. */
export async function openDatasetSession(
  { o, again }: DatasetRun,
  path: string,
  { farm, config, stateDir, prepared }: Opened,
  stack: AsyncDisposableStack,
  stop: Stop,
): Promise<{ session: Session; collection: Collection }> {
  const { record, dataset, patches } = prepared;
  const run = outputRunOf(record, stateDir, o.outputFormat, o);
  const output = stack.use(await openRunOutput(path, run, async () => dataset.instances));
  const { instances } = dataset;
  const session = {
    farm,
    config,
    record,
    instances,
    patches,
    output,
    stop,
    copyArtifactsTo: o.copyArtifacts,
  };
  const collection = await openCollection(session, o, again);
  return { session: { ...session, instances: collection.instances }, collection };
}

export type DatasetWork = {
  collection: Collection;
  workers: LocalWorkers;
  minGroup: number | undefined;
  places: (session: Session) => string[];
  resumeHint: string;
};

/** Queues, follows and reports the run, also when it breaks off. */
export async function runDatasetSession(session: Session, work: DatasetWork): Promise<ExitCode> {
  const { collection, workers, minGroup, places, resumeHint } = work;
  const end = ({ complete, unreadable }: Collected): ExitCode =>
    reportRunEnd({
      ...{ ...session, complete, unreadable, minGroup, resumeHint },
      instanceIds: session.instances.map(({ instance_id: id }) => id),
      queued: collection.queued(),
      places: places(session),
    });
  try {
    return end(await runSession(session, { ...collection, workers }));
  } catch (error) {
    end({ complete: false, unreadable: [] });
    throw error;
  }
}
