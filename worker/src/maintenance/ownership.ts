/** Who has a rollout in hand: the worker of its last attempt, while that attempt has no end and that worker lives. */
import type { Farm, JournalEntry } from '@swefarm/shared';

/** Ids of the workers that beat. */
export async function livingWorkers(farm: Farm): Promise<ReadonlySet<string>> {
  return new Set((await farm.registry.list()).map(({ worker }) => worker));
}

export function heldBy(journal: readonly JournalEntry[], living: ReadonlySet<string>): string | null {
  const last = journal.at(-1);
  return last && last.ended_at === null && living.has(last.worker) ? last.worker : null;
}
