/**
 * What was cancelled ends at once: a rollout that waits is committed here, one in work by its worker. A worker that
 * does not get round to it in time is not waited for; its commit is then late.
 */
import type { Farm, RunRecord } from '@swefarm/shared';
import { commitUnowned } from './commitunowned.ts';
import type { Duty } from './maintenance.ts';
import { heldBy, livingWorkers } from './ownership.ts';
import { eachRun } from './runs.ts';

/** A worker hears of a cancel within a second, and needs a moment to save what was said. */
const WORKERS_TIME_MS = 15_000;
const AT_ONCE = 32;
/** All marks are looked at when one was added, and this often besides; in between only what workers still had in hand. */
const ALL_MARKS_MS = 5_000;

/** `waitMs`: how long the worker of a running rollout is waited for. */
export function cancelledDuty(waitMs = WORKERS_TIME_MS): Duty {
  /** By run: rollout → since when (monotonic ms) its worker is waited for. A new keeper waits anew. */
  let waiting = new Map<string, Map<string, number>>();
  let epoch = -1;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'cancelled',
    everyMs: 500,
    async run(deps, signal) {
      const { farm, log } = deps;
      const now = await farm.cancel.epoch();
      const all = now !== epoch || performance.now() - lookedAt > ALL_MARKS_MS;
      const still = new Map<string, Map<string, number>>();
      let settled = 0;
      await eachRun('cancelled', deps, signal, async (run) => {
        const since = waiting.get(run.run_id) ?? new Map<string, number>();
        const held = new Map<string, number>();
        const parts = all ? marked(farm, run.run_id) : again(farm, run.run_id, [...since.keys()]);
        for await (const ids of parts) {
          if (signal.aborted) break;
          settled += await settleAll(farm, run, ids, { since, held, waitMs });
        }
        if (held.size > 0) still.set(run.run_id, held);
      });
      waiting = still;
      if (all && !signal.aborted) {
        epoch = now;
        lookedAt = performance.now();
      }
      if (settled > 0) log.info({ rollouts: settled }, 'cancelled rollouts that nobody worked on');
    },
  };
}

/** Cancelled rollouts of a run without a result: costs what was cancelled, not what the run holds. */
async function* marked(farm: Farm, runId: string): AsyncGenerator<string[]> {
  if ((await farm.cancel.runCancelled(runId)) !== null) {
    yield* farm.groups.openParts(runId);
    return;
  }
  for await (const { rollouts, groups } of farm.cancel.markParts(runId)) {
    if (groups.length > 0) yield* farm.groups.openParts(runId, groups);
    yield* again(farm, runId, rollouts);
  }
}

async function* again(farm: Farm, runId: string, rolloutIds: readonly string[]): AsyncGenerator<string[]> {
  if (rolloutIds.length > 0) yield await farm.groups.stillOpen(runId, rolloutIds);
}

type Wait = { since: ReadonlyMap<string, number>; held: Map<string, number>; waitMs: number };

/** How many were committed; the others go to `held`. */
async function settleAll(
  farm: Farm,
  run: RunRecord,
  ids: readonly string[],
  { since, held, waitMs }: Wait,
): Promise<number> {
  const reasons = [...(await farm.cancel.isCancelled(ids))];
  if (reasons.length === 0) return 0;
  const living = await livingWorkers(farm);
  let settled = 0;
  for (let at = 0; at < reasons.length; at += AT_ONCE) {
    const part = reasons.slice(at, at + AT_ONCE).map(async ([id, reason]) => {
      const journal = await farm.journal.read(id);
      const from = since.get(id) ?? performance.now();
      if (heldBy(journal, living) !== null && performance.now() - from < waitMs) held.set(id, from);
      else if (await commitUnowned(farm, run, id, journal, { cancelled: reason })) settled += 1;
    });
    await Promise.all(part);
  }
  return settled;
}
