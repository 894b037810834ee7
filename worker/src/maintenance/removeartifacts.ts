/** Removes artifacts of attempts that were late or died before their commit. */
import type { Farm, JournalEntry, StoredArtifact } from '@swefarm/shared';
import { type Duty, eachRun } from './duty.ts';

/** Minimum age of an artifact to be removed: an artifact is written before its commit, so a younger one may still be committed. */
const YOUNG_MS = 10 * 60_000;

export const removeOwnerlessArtifacts: Duty = {
  name: 'remove-ownerless-artifacts',
  everyMs: 60_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    await eachRun(this.name, deps, signal, async ({ run_id }, now) => {
      let removed = 0;
      for await (const stored of farm.artifacts.runParts(run_id)) {
        if (signal.aborted) return;
        const ownerless = await ownerlessOf(farm, run_id, stored, now);
        for (const locator of ownerless) await farm.artifacts.remove(locator);
        removed += ownerless.length;
      }
      if (removed > 0) log.info({ run: run_id, artifacts: removed }, 'removed ownerless artifacts');
    });
  },
};

/** Returns locators of unneeded artifacts: all but the winner's; without a result, those of ended attempts without resumable work. */
export async function ownerlessOf(
  farm: Farm,
  runId: string,
  stored: readonly StoredArtifact[],
  now: number,
): Promise<string[]> {
  const winners = await farm.results.winners(
    runId,
    stored.map(({ rollout_id }) => rollout_id),
  );
  const ownerless: string[] = [];
  for (const { rollout_id, attempt, claim, locator } of stored) {
    const winner = winners.get(rollout_id);
    if (winner && winner.claim === claim && winner.attempt === attempt) continue;
    const journal = await farm.journal.read(rollout_id);
    const entry = journal.find((one) => one.claim === claim);
    if (entry && now - (entry.ended_at ?? entry.claimed_at) < YOUNG_MS) continue;
    if (winner === undefined && (!entry || mayBeNeeded(entry))) continue;
    ownerless.push(locator);
  }
  return ownerless;
}

const mayBeNeeded = (entry: JournalEntry): boolean => entry.ended_at === null || entry.end?.kept != null;
