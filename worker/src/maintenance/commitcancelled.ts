/**
 * Ends cancelled rollouts at once: a waiting rollout is committed here, a running one by its worker. When that worker does not
 * commit in time, it is committed here too, and the worker's commit then comes too late.
 */
import type { Farm, RunRecord } from '@swefarm/shared';
import { commitUnowned, livingWorkers, workerOf } from './commitunowned.ts';
import { type Duty, eachRun } from './duty.ts';

/** A worker learns of a cancel within a second, and needs a moment to store its trajectory. */
const WORKERS_TIME_MS = 15_000;
const AT_ONCE = 32;
/** All marks are read when one was added, and at this interval; in between only the rollouts that workers still ran. */
const ALL_MARKS_MS = 5_000;

/** `waitMs`: how long to wait for the worker of a running rollout. */
export function commitCancelled(waitMs = WORKERS_TIME_MS): Duty {
  /** Run → rollout → since when (monotonic ms) maintenance waits for its worker. The next worker to do this duty starts the wait anew. */
  let waiting = new Map<string, Map<string, number>>();
  let epoch = -1;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'commit-cancelled',
    everyMs: 500,
    async run(deps, signal) {
      const { farm, log } = deps;
      const now = await farm.cancel.epoch();
      const all = now !== epoch || performance.now() - lookedAt > ALL_MARKS_MS;
      const still = new Map<string, Map<string, number>>();
      let committed = 0;
      // Read after the epoch: a run that is cancelled in between must not count as visited.
      const visits = all ? { ...deps, unfinishedRuns: () => farm.groups.unfinishedRuns() } : deps;
      await eachRun(this.name, visits, signal, async (run) => {
        const since = waiting.get(run.run_id) ?? new Map<string, number>();
        const held = new Map<string, number>();
        const parts = all
          ? cancelledParts(farm, run.run_id)
          : stillOpenPart(farm, run.run_id, [...since.keys()]);
        for await (const ids of parts) {
          if (signal.aborted) break;
          committed += await commitPart(farm, run, ids, { since, held, waitMs });
        }
        if (held.size > 0) still.set(run.run_id, held);
      });
      waiting = still;
      if (all && !signal.aborted) {
        epoch = now;
        lookedAt = performance.now();
      }
      if (committed > 0) log.info({ rollouts: committed }, 'cancelled rollouts that nobody worked on');
    },
  };
}

/** Cancelled rollouts of a run without a result; the cost depends on the number of cancels, not on the size of the run. */
async function* cancelledParts(farm: Farm, runId: string): AsyncGenerator<string[]> {
  if ((await farm.cancel.runCancelled(runId)) !== null) {
    yield* farm.groups.openParts(runId);
    return;
  }
  for await (const { rollouts, groups } of farm.cancel.markParts(runId)) {
    if (groups.length > 0) yield* farm.groups.openParts(runId, groups);
    yield* stillOpenPart(farm, runId, rollouts);
  }
}

async function* stillOpenPart(
  farm: Farm,
  runId: string,
  rolloutIds: readonly string[],
): AsyncGenerator<string[]> {
  if (rolloutIds.length > 0) yield await farm.groups.stillOpen(runId, rolloutIds);
}

type Wait = { since: ReadonlyMap<string, number>; held: Map<string, number>; waitMs: number };

/** Returns how many were committed; adds the others to `held`. */
async function commitPart(
  farm: Farm,
  run: RunRecord,
  ids: readonly string[],
  { since, held, waitMs }: Wait,
): Promise<number> {
  const reasons = [...(await farm.cancel.isCancelled(ids))];
  if (reasons.length === 0) return 0;
  const living = await livingWorkers(farm);
  let committed = 0;
  for (let at = 0; at < reasons.length; at += AT_ONCE) {
    const part = reasons.slice(at, at + AT_ONCE).map(async ([id, reason]) => {
      const journal = await farm.journal.read(id);
      const from = since.get(id) ?? performance.now();
      if (workerOf(journal, living) !== null && performance.now() - from < waitMs) held.set(id, from);
      else if (await commitUnowned(farm, run, id, journal, { outcome: 'cancelled', cancelReason: reason }))
        committed += 1;
    });
    await Promise.all(part);
  }
  return committed;
}
