/** Commits results of rollouts that no worker is running: cancelled while they waited, or given up. No facts, so no reward. */
import {
  type CancelReason,
  type Failure,
  type Farm,
  type JournalEntry,
  newId,
  parseRolloutId,
  type RunRecord,
} from '@swefarm/shared';
import { resultWithoutFacts } from '../rollout/result.ts';

/** Marks results that maintenance committed, not the worker of an attempt. */
const COMMITTED_BY = { worker: 'keeper', node: 'keeper', runtime: 'none' };

/** Ids of the workers with a current heartbeat. */
export async function livingWorkers(farm: Farm): Promise<ReadonlySet<string>> {
  return new Set((await farm.registry.list()).map(({ worker }) => worker));
}

/** The worker that runs the rollout: that of its last attempt, while that attempt has no end and that worker lives. */
export function workerOf(journal: readonly JournalEntry[], living: ReadonlySet<string>): string | null {
  const last = journal.at(-1);
  return last && last.ended_at === null && living.has(last.worker) ? last.worker : null;
}

export type UnownedEnd =
  | { outcome: 'cancelled'; cancelReason: CancelReason }
  | { outcome: 'failed'; failure: Failure };

/** Commits the result and removes the job from the queue; true when it became the rollout's result. */
export async function commitUnowned(
  farm: Farm,
  run: RunRecord,
  rolloutId: string,
  journal: readonly JournalEntry[],
  end: UnownedEnd,
): Promise<boolean> {
  const { instanceId, index } = parseRolloutId(rolloutId);
  const { outcome } = end;
  const result = resultWithoutFacts(
    run,
    {
      rollout_id: rolloutId,
      instance_id: instanceId,
      rollout_index: index,
      attempt: journal.at(-1)?.attempt ?? 0,
      // Not the claim of an attempt: an attempt that still runs must learn that the rollout is over.
      claim: newId(),
    },
    { ...COMMITTED_BY, finished_at: farm.clock.now() },
    outcome === 'failed'
      ? { outcome, reward_row: outcome, failure: end.failure }
      : { outcome, reward_row: end.cancelReason, failure: null },
  );
  const reply = await farm.commit(run, result);
  await farm.jobs.drop([rolloutId]);
  return reply.status === 'committed';
}
