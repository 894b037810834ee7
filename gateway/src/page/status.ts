/** The state of a farm: runs with counts, queue and workers, for `status`, `watch` and the page. */
import {
  type AdmissionPool,
  type Farm,
  mostGroups,
  type RunCounts,
  type RunRecord,
  startedRollouts,
  type UnreadableRun,
  UsageError,
  type WorkerRecord,
} from '@swefarm/shared';
import { meansOf } from '@swefarm/trajectories';
import type { RunStatus } from './data.ts';

export type FarmStatus = {
  redis: string;
  runs: RunStatus[];
  queue: Record<string, number>;
  workers: WorkerRecord[];
  /** Admission of rollouts by policy. */
  admission: AdmissionPool[];
  /** Runs whose records are damaged or of a newer version. */
  unreadable: UnreadableRun[];
};

/** Returns the state of the farm with all runs, newest first, or with the run `runId` only. Throws UsageError `run_unknown`. */
export async function farmStatus(farm: Farm, runId?: string): Promise<FarmStatus> {
  const records = runId === undefined ? await farm.runs.list() : [await knownRun(farm, runId)];
  const [runs, queue, workers, admission, unreadable] = await Promise.all([
    Promise.all(
      records.map(async (record) => {
        const pause = await farm.groups.paused(record.run_id);
        return runStatus(record, await farm.results.counts(record.run_id), pause?.reason ?? null);
      }),
    ),
    farm.queue().getJobCounts('active', 'prioritized', 'waiting', 'delayed', 'failed'),
    farm.registry.list(),
    farm.admissions.list(),
    farm.runs.unreadable(),
  ]);
  // Jobs of rollouts that wait for admission are delayed too. `admission` counts them.
  const forPolicy = admission.reduce((sum, pool) => sum + pool.waiting, 0);
  queue.delayed = Math.max(0, (queue.delayed ?? 0) - forPolicy);
  return { redis: farm.address, runs, queue, workers, admission, unreadable };
}

/** Returns the record of a run. Throws UsageError `run_unknown`. */
export async function knownRun(farm: Farm, runId: string): Promise<RunRecord> {
  const record = await farm.runs.get(runId);
  if (record) return record;
  throw unknownRun(farm, runId);
}

export const unknownRun = (farm: Pick<Farm, 'address'>, runId: string): UsageError =>
  new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists the runs`, {
    code: 'run_unknown',
  });

/** @param paused reason of the pause; null: the run is not paused */
export const runStatus = (record: RunRecord, counts: RunCounts, paused: string | null = null): RunStatus => ({
  ...statusOf(recordStatus(record), { ...counts, ...counts.outcomes }, paused),
  ...(record.dry_run ? { dry_run: true } : {}),
  draws: drawsOf(record, counts),
});

function drawsOf(
  record: RunRecord,
  { selected, drawn, dropped }: Pick<RunCounts, 'selected' | 'drawn' | 'dropped'>,
): RunStatus['draws'] {
  if (record.until === null) return null;
  const most = mostGroups(record, record.dataset.instances);
  return { wanted: record.until.groups, selected, drawn, most, dropped };
}

/** Returns the part of a run's status that its record determines. */
export const recordStatus = (record: RunRecord) => ({
  run_id: record.run_id,
  created_at: record.created_at,
  kind: record.kind as string,
  agent: record.agent.type as string,
  model: record.policy?.model ?? null,
  instances: record.dataset.instances,
  group_size: record.group_size,
  rollouts: startedRollouts(record),
});

type Sums = Parameters<typeof meansOf>[0] &
  Pick<RunStatus, 'committed' | 'failed' | 'cancelled' | 'failures'>;

export function statusOf(
  about: ReturnType<typeof recordStatus>,
  sums: Sums,
  paused: string | null = null,
): RunStatus {
  const { committed, judged, resolved, scored, failed, cancelled, failures } = sums;
  const { reward_mean, turns_mean } = meansOf(sums);
  return {
    ...about,
    rollouts: Math.max(about.rollouts, committed),
    ...{ committed, judged, resolved, scored, failed, cancelled, failures },
    ...{ turns_mean, reward_mean, paused, draws: null },
  };
}
