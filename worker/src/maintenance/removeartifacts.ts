/** Artifacts that nobody will ever ask for: of attempts that another one overtook, or that died before their commit. */
import type { Farm, JournalEntry } from '@swefarm/shared';
import type { Duty } from './maintenance.ts';
import { eachRun } from './runs.ts';

/** An artifact is written just before its commit, maybe by a worker that the journal has given up: it gets its time. */
const YOUNG_MS = 10 * 60_000;

export const ownerlessArtifacts: Duty = {
  name: 'ownerless-artifacts',
  everyMs: 60_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    await eachRun('ownerless-artifacts', deps, signal, async ({ run_id }, now) => {
      const ownerless = await ownerlessOf(farm, run_id, now);
      for (const locator of ownerless) await farm.artifacts.remove(locator);
      if (ownerless.length > 0)
        log.info({ run: run_id, artifacts: ownerless.length }, 'removed ownerless artifacts');
    });
  },
};

/** Of rollouts with a result: all but the winner's. Of others: attempts that ended and left no work behind. */
export async function ownerlessOf(farm: Farm, runId: string, now: number): Promise<string[]> {
  const stored = await farm.artifacts.listRun(runId);
  if (stored.length === 0) return [];
  const winners = await farm.results.winners(runId);
  const ownerless: string[] = [];
  for (const { rollout_id, attempt, claim, locator } of stored) {
    const winner = winners.get(rollout_id);
    if (winner && winner.claim === claim && winner.attempt === attempt) continue;
    const journal = await farm.journal.read(rollout_id);
    // One of before there were claims is known by its number.
    const entry = journal.find((one) => (claim === null ? one.attempt === attempt : one.claim === claim));
    if (entry && now - (entry.ended_at ?? entry.claimed_at) < YOUNG_MS) continue;
    if (winner === undefined && (!entry || keeps(entry))) continue;
    ownerless.push(locator);
  }
  return ownerless;
}

const keeps = (entry: JournalEntry): boolean => entry.ended_at === null || entry.end?.kept != null;
