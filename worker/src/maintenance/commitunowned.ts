/** Commits results of rollouts that no worker is running: cancelled or given up. These results have no facts and no reward. */
import { type Farm, type JournalEntry, newId, parseRolloutId, type RunRecord } from '@swefarm/shared';
import type { Conclusion } from '../rollout/context.ts';
import { resultWithoutFacts } from '../rollout/result.ts';

const COMMITTED_BY = { worker: 'keeper', node: 'keeper', runtime: 'none' };

export async function livingWorkers(farm: Farm): Promise<ReadonlySet<string>> {
  return new Set((await farm.registry.list()).map(({ worker }) => worker));
}

/** Returns the living worker of the rollout's last attempt; null if that attempt has ended or its worker is dead. */
export function workerOf(journal: readonly JournalEntry[], living: ReadonlySet<string>): string | null {
  const last = journal.at(-1);
  return last && last.ended_at === null && living.has(last.worker) ? last.worker : null;
}

/** Commits the result and removes the job from the queue. Returns false if the rollout already had a result. */
export async function commitUnowned(
  farm: Farm,
  run: RunRecord,
  rolloutId: string,
  journal: readonly JournalEntry[],
  end: Exclude<Conclusion, { outcome: 'judged' }>,
): Promise<boolean> {
  const { instanceId: instance_id, index: rollout_index } = parseRolloutId(rolloutId);
  const { outcome } = end;
  // A new claim makes the commit of an attempt that still runs late.
  const attempt = { attempt: journal.at(-1)?.attempt ?? 0, claim: newId() };
  const result = resultWithoutFacts(
    run,
    { rollout_id: rolloutId, instance_id, rollout_index, ...attempt },
    { ...COMMITTED_BY, finished_at: farm.clock.now() },
    outcome === 'failed'
      ? { outcome, reward_row: outcome, failure: end.failure }
      : { outcome, reward_row: end.cancelReason, failure: null },
  );
  const reply = await farm.commit(run, result);
  await farm.jobs.drop([rolloutId]);
  return reply.status === 'committed';
}
