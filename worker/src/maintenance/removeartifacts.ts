/** Removes artifacts of attempts that were late or died before their commit. */
import type { Farm, StoredArtifact } from '@swefarm/shared';
import { dutyOfRuns } from './duty.ts';

/** Minimum time from an attempt's end, or from its claim, to the removal of its artifact, which is written before its commit. */
const YOUNG_MS = 10 * 60_000;

export const removeOwnerlessArtifacts = dutyOfRuns(
  'remove-ownerless-artifacts',
  60_000,
  async ({ run_id }, { farm, log }, now, signal) => {
    let removed = 0;
    for await (const stored of farm.artifacts.runParts(run_id)) {
      if (signal.aborted) return;
      const ownerless = await ownerlessOf(farm, run_id, stored, now);
      for (const locator of ownerless) await farm.artifacts.remove(locator);
      removed += ownerless.length;
    }
    if (removed > 0) log.info({ run: run_id, artifacts: removed }, 'removed ownerless artifacts');
  },
);

/**
 * Returns the locators of the artifacts that can be removed. If the rollout has a result, these are the artifacts of all attempts except
 * the attempt that committed the result. Otherwise, these are the artifacts of ended attempts without resumable work or recorded turns. The artifact of
 * an attempt that ended (or, if it has not ended, was claimed) less than {@link YOUNG_MS} ago remains.
 */
export async function ownerlessOf(
  farm: Farm,
  runId: string,
  stored: readonly StoredArtifact[],
  now: number,
): Promise<string[]> {
  const ids = stored.map(({ rollout_id }) => rollout_id);
  const winners = await farm.results.winners(runId, ids);
  const ownerless: string[] = [];
  for (const { rollout_id, attempt, claim, locator } of stored) {
    const winner = winners.get(rollout_id);
    if (winner && winner.claim === claim && winner.attempt === attempt) continue;
    const journal = await farm.journal.read(rollout_id);
    const entry = journal.find((one) => one.claim === claim);
    if (entry && now - (entry.ended_at ?? entry.claimed_at) < YOUNG_MS) continue;
    const mayBeNeeded =
      !entry || entry.ended_at === null || entry.end?.kept != null || entry.end?.turns != null;
    if (winner === undefined && mayBeNeeded) continue;
    ownerless.push(locator);
  }
  return ownerless;
}
