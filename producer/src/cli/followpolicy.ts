/** `swefarm follow-policy`: validates a policy while it is trained. Queues a run of a dataset for each nth version. */
import { submit } from '@swefarm/runs';
import {
  DEFAULT_POLICY,
  errorMessage,
  type Farm,
  idOf,
  type ProducerConfig,
  type RunRecord,
  sleepAtMost,
  UnusableError,
  UsageError,
} from '@swefarm/shared';
import { checkOnFarm } from './datasetrun.ts';
import { command, defaulted, text, whole } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { openFarmPatiently } from './farm.ts';
import { DATASET, FARM, producerConfig, RUN } from './options.ts';
import { type PreparedRun, type PrepareValues, prepareRun } from './prepare.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus } from './terminal.ts';

const POLL_MS = 2_000;

export const followPolicy = command({
  arguments: { '[name]': defaulted(text('name of the policy'), DEFAULT_POLICY) },
  options: {
    '--every <n>': defaulted(
      whole('validate each nth version: by the number at the end of its name (step-120), else by count'),
      1,
    ),
    '--versions <n>': whole('end after so many runs (default: at Ctrl-C)'),
    ...DATASET,
    ...RUN,
    ...FARM,
  },
  example: 'swefarm follow-policy main --every 10 --dataset verified.jsonl --model MODEL',
  async run(given, { name }) {
    const o = { ...given, run: validationOf(name, given.run) };
    const config = producerConfig(o);
    const { draining: signal } = listenForStop();
    const prepared = await prepareRun(o, config, null, signal);
    await using farm = await openFarmPatiently(config, signal, { entrusts: true });
    for (const warning of farm.warnings) printStatus(`swefarm: ${warning}`);
    return await followVersions({ o, config, prepared, farm, name, signal });
  },
});

/** Returns the flags of the runs: they follow the policy, and are of kind `validation`, which goes before training. */
function validationOf(name: string, run: PrepareValues['run']): PrepareValues['run'] {
  const { policyName = name, kind = 'validation' } = run;
  if (policyName === name) return { ...run, policyName, kind };
  throw new UsageError(`--policy-name ${policyName}: the runs follow policy ${name}; leave it out`);
}

type Following = {
  o: PrepareValues & { every: number; versions: number | undefined };
  config: ProducerConfig;
  prepared: PreparedRun;
  farm: Farm;
  name: string;
  signal: AbortSignal;
};

async function followVersions(following: Following): Promise<ExitCode> {
  const { o, farm, name, signal } = following;
  let queued = 0;
  let seen: string | null = null;
  let problem = '';
  while (!signal.aborted && queued < (o.versions ?? Infinity)) {
    const [policy] = await farm.policies.get([name]);
    const version = policy?.version ?? null;
    // Only the weights that are served now can be validated.
    if (policy?.state === 'serving' && version !== null && version !== seen) {
      try {
        if (await validate(following, policy.versions, version)) queued++;
        seen = version;
        problem = '';
      } catch (error) {
        if (!(error instanceof UnusableError)) throw error;
        if (errorMessage(error) !== problem)
          printStatus(`swefarm: version ${version} waits: ${errorMessage(error)}`);
        problem = errorMessage(error);
      }
    }
    if (queued < (o.versions ?? Infinity)) await sleepAtMost(POLL_MS, signal);
  }
  return signal.aborted ? EXIT.interrupted : EXIT.allJudged;
}

/**
 * Queues the run of a version that is due; of a version that has a run, the missing jobs. Returns whether the run is new. Its id is a
 * function of version and settings.
 */
async function validate(following: Following, versions: readonly string[], version: string) {
  const { o, prepared, farm, signal } = following;
  const idFor = (one: string) => runIdOf(prepared.record, one);
  const known = await farm.runs.get(idFor(version));
  if (known) {
    await submit(farm, { ...submissionOf(prepared), record: known }, signal);
    return false;
  }
  const stored = await Promise.all(versions.map(async (one) => await farm.runs.exists(idFor(one))));
  if (!isDue(versions, version, stored, o.every)) return false;
  const fresh = { ...prepared.record, run_id: idFor(version), created_at: new Date().toISOString() };
  const checked = await checkOnFarm(following, { ...prepared, record: fresh }, farm, { isNew: true, signal });
  const { run_id, rollouts } = await submit(farm, submissionOf(checked), signal);
  await print(JSON.stringify({ version, run_id, rollouts: rollouts.length }));
  return true;
}

const submissionOf = ({ record, dataset: { instances }, patches, known }: PreparedRun) => ({
  ...{ record, instances, known },
  ...(patches ? { patches } : {}),
});

/**
 * Returns whether a version is validated: each nth one by the number at the end of its name, else the nth one behind the last that has a
 * run. @param stored whether each version has a run
 */
export function isDue(
  versions: readonly string[],
  version: string,
  stored: readonly boolean[],
  every: number,
): boolean {
  const number = /(\d+)$/.exec(version)?.[1];
  if (number !== undefined) return BigInt(number) % BigInt(every) === 0n;
  const last = stored.lastIndexOf(true);
  return last < 0 || versions.lastIndexOf(version) - last >= every;
}

function runIdOf({ policy, ...record }: RunRecord, version: string): string {
  const settings = { ...record, run_id: '', created_at: '', deadline_at: null };
  return idOf('v', JSON.stringify([version, settings, { ...policy, api_key_ref: null }]));
}
