import {
  DEFAULT_POLICY,
  type Draw,
  type Farm,
  followsPolicy,
  type Instance,
  type KnownHistory,
  type RunRecord,
  rolloutId,
  SwefarmError,
  startedGroup,
  startedGroups,
  UsageError,
} from '@swefarm/shared';
import { planDraws } from './draws/plan.ts';
import { inOrder, placedDraws } from './forecast.ts';
import { withShownPictures } from './pictures.ts';
import { requireCountableCost } from './record.ts';

export type Submission = {
  record: RunRecord;
  instances: readonly Instance[];
  /** Patches that the rollouts of each instance apply in turn; only for the agent `patch`. */
  patches?: ReadonlyMap<string, readonly string[]>;
  /** Rollouts that need not run, because an output already has their results. */
  done?: ReadonlySet<string>;
  /** History of the instances, if the caller has read it. */
  known?: KnownHistory | undefined;
};

export type Submitted = {
  run_id: string;
  rollouts: string[];
  /** The number of rollouts without a result and without an output line. */
  queued: number;
};

const CHUNK = 500;

/**
 * Writes the records of the run, then its jobs. After a crash, a second call adds only the missing jobs. A run with `until` draws its
 * instances (draws/plan.ts), and the commits of its results open further groups.
 *
 * @throws UsageError `pictures`, `run_invalid` or `run_unknown`, or for a limit of cost without a price; SwefarmError `aborted`, or `run_differs` if
 * another record has the run's id; UnusableError of Redis
 */
export async function submit(farm: Farm, submission: Submission, signal?: AbortSignal): Promise<Submitted> {
  const { record, patches } = submission;
  requireCountableCost(record);
  const shown = withShownPictures(record, submission.instances);
  if (record.until !== null)
    return await submitDraws(farm, record, { ...submission, instances: shown }, signal);
  const instances = await inOrder(farm, record, shown, submission.known);
  await farm.runs.create(record, instances, patchRecords(patches));
  const rollouts = rolloutIds(record, instances);
  // Rollouts whose results are in an output are not open in their group: otherwise maintenance would queue them.
  const wanted = rollouts.filter((id) => !submission.done?.has(id));
  await farm.groups.reopen(wanted);
  if (submission.done) await farm.groups.markDoneElsewhere([...submission.done]);
  const committed = await farm.results.committedIds(record.run_id);
  const open = wanted.filter((id) => !committed.has(id));
  await queueMissing(farm, record, open, signal);
  return { run_id: record.run_id, rollouts, queued: open.length };
}

/** Plans the draws of a new run and queues its first groups; of a known run, queues missing jobs of its open rollouts. */
async function submitDraws(
  farm: Farm,
  record: RunRecord,
  submission: Submission,
  signal?: AbortSignal,
): Promise<Submitted> {
  const { done } = submission;
  const { run_id } = record;
  if (!(await farm.runs.exists(run_id))) {
    if (done && done.size > 0) {
      throw new UsageError(
        `run ${run_id}: its draws were in a Redis that no longer has them, so it cannot be resumed: start a new run with another output`,
        { code: 'run_unknown' },
      );
    }
    await createDrawn(farm, record, submission);
  }
  const open = await farm.groups.open(run_id);
  await queueMissing(farm, record, open, signal);
  return { run_id, rollouts: await farm.groups.rollouts(run_id), queued: open.length };
}

async function createDrawn(
  farm: Farm,
  record: RunRecord,
  { instances, patches, known: read }: Omit<Submission, 'record'>,
): Promise<void> {
  const { until, policy } = record;
  if (until === null) return;
  const families = until.curriculum && policy ? new Set(instances.map(({ family }) => family)) : [];
  const known = await Promise.all([...families].map((family) => policy && farm.passes.read(policy, family)));
  const plan = planDraws({ ...record, until }, instances, new Map(known.flatMap((own) => [...(own ?? [])])));
  const byId = new Map(instances.map((instance) => [instance.instance_id, instance]));
  const draws = await farm.runs.storeDraws(record, await inQueue(farm, record, plan.draws, byId, read));
  const drawn = draws.flatMap(({ instance_id: id }) => byId.get(id) ?? []);
  const names = new Set(draws.map((draw) => draw.instance_id));
  const ofDrawn = new Map([...(patches ?? [])].filter(([id]) => names.has(id)));
  await farm.runs.create(
    { ...record, until: { ...until, strata: plan.strata } },
    drawn,
    patchRecords(ofDrawn),
  );
}

async function inQueue(
  farm: Farm,
  record: RunRecord,
  draws: readonly Draw[],
  byId: ReadonlyMap<string, Instance>,
  read: KnownHistory | undefined,
): Promise<readonly Draw[]> {
  if (record.order === 'given') return draws;
  const known = read ?? (await farm.history.read(record.agent, [...byId.values()]));
  return placedDraws(draws, startedGroups(record, record.dataset.instances), byId, known);
}

/**
 * Queues rollouts that {@link submit} marked as done elsewhere. A repeated call queues only missing jobs.
 *
 * @throws UnusableError of Redis
 */
export async function queueMore(farm: Farm, record: RunRecord, rollouts: readonly string[]): Promise<void> {
  await farm.groups.reopen(rollouts);
  await queueMissing(farm, record, rollouts);
}

async function queueMissing(
  farm: Farm,
  record: RunRecord,
  rollouts: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const missing = await farm.jobs.missing(rollouts);
  for (let at = 0; at < missing.length; at += CHUNK) {
    if (signal?.aborted) {
      throw new SwefarmError(
        'aborted',
        `stopped after ${at} of ${missing.length} jobs; the others are added when the run is resumed`,
      );
    }
    await farm.jobs.enqueue(record, missing.slice(at, at + CHUNK));
  }
}

export function rolloutIds(
  record: Pick<RunRecord, 'run_id' | 'group_size' | 'oversample'>,
  instances: Iterable<Pick<Instance, 'instance_id'>>,
): string[] {
  return Array.from(instances, ({ instance_id }) =>
    Array.from({ length: startedGroup(record) }, (_, index) => rolloutId(record.run_id, instance_id, index)),
  ).flat();
}

function* patchRecords(patches: Submission['patches']): Generator<[ref: string, patch: string]> {
  for (const [instanceId, given] of patches ?? []) {
    for (const [index, patch] of given.entries()) yield [`${instanceId}.${index}`, patch];
  }
}

/** Returns a warning if max_staleness has no effect because no trainer announces versions of the run's policy; else null. */
export async function staleLimitWarning(
  { max_staleness: most, policy }: Pick<RunRecord, 'max_staleness' | 'policy'>,
  farm: Pick<Farm, 'policies'>,
): Promise<string | null> {
  if (most === null) return null;
  const name = policy?.name ?? DEFAULT_POLICY;
  const [record] = policy ? await farm.policies.get([name]) : [];
  if (policy && record && followsPolicy(policy, record) && record.version !== null) return null;
  return (
    `max_staleness ${most} has no effect: no trainer has announced versions of the policy "${name}" that this run follows; ` +
    'announce each with PUT /policy at the gateway, or swefarm policy set --policy-version NAME'
  );
}
