/** The state of a farm: its runs with their counts, its queue, its workers, for `status`, `watch` and the page. */
import {
  type Farm,
  type RunCounts,
  type RunRecord,
  startedRollouts,
  type UnreadableRun,
  UsageError,
  type WorkerRecord,
} from '@swefarm/shared';
import { meansOf } from '@swefarm/trajectories';

export type RunStatus = {
  run_id: string;
  created_at: string;
  kind: string;
  agent: string;
  model: string | null;
  instances: number;
  group_size: number;
  rollouts: number;
  committed: number;
  judged: number;
  resolved: number;
  /** Judged by a number alone. */
  scored: number;
  failed: number;
  cancelled: number;
  turns_mean: number | null;
  reward_mean: number | null;
  failures: Record<string, number>;
  /** Why the run is paused; null when it is not. */
  paused: string | null;
};

export type FarmStatus = {
  redis: string;
  runs: RunStatus[];
  queue: Record<string, number>;
  workers: WorkerRecord[];
  /** Runs whose records this version cannot read, or must leave to a newer version. */
  unreadable: UnreadableRun[];
};

/** The status of all runs, newest first, or of one. Throws UsageError when there is no such run. */
export async function farmStatus(farm: Farm, runId?: string): Promise<FarmStatus> {
  const records = runId === undefined ? await farm.runs.list() : [await knownRun(farm, runId)];
  const [runs, queue, workers, unreadable] = await Promise.all([
    Promise.all(
      records.map(async (record) => {
        const pause = await farm.groups.paused(record.run_id);
        return runStatus(record, await farm.results.counts(record.run_id), pause?.reason ?? null);
      }),
    ),
    farm.queue().getJobCounts('active', 'prioritized', 'waiting', 'delayed', 'failed'),
    farm.registry.list(),
    farm.runs.unreadable(),
  ]);
  return { redis: farm.address, runs, queue, workers, unreadable };
}

/** The record of a run. Throws UsageError when there is none. */
export async function knownRun(farm: Farm, runId: string): Promise<RunRecord> {
  const record = await farm.runs.get(runId);
  if (record) return record;
  throw unknownRun(farm, runId);
}

export const unknownRun = (farm: Pick<Farm, 'address'>, runId: string): UsageError =>
  new UsageError(`run ${runId}: not at ${farm.address}; swefarm status lists what there is`, {
    code: 'run_unknown',
  });

/** `paused`: why the run is paused; null when it is not. */
export function runStatus(record: RunRecord, counts: RunCounts, paused: string | null = null): RunStatus {
  const { judged, failed, cancelled } = counts.outcomes;
  const { reward_mean, turns_mean } = meansOf({ ...counts, judged });
  return {
    run_id: record.run_id,
    created_at: record.created_at,
    kind: record.kind,
    agent: record.agent.type,
    model: record.policy?.model ?? null,
    instances: record.dataset.instances,
    group_size: record.group_size,
    rollouts: Math.max(startedRollouts(record), counts.committed),
    committed: counts.committed,
    judged,
    resolved: counts.resolved,
    scored: counts.scored,
    failed,
    cancelled,
    turns_mean,
    reward_mean,
    failures: counts.failures,
    paused,
  };
}
