/**
 * Commits cancelled rollouts: waiting ones at once, running ones only if their worker does not commit in time. If that worker commits
 * later, its commit is late.
 */
import type { Farm, RunRecord } from '@swefarm/shared';
import { commitUnowned, livingWorkers, workerOf } from './commitunowned.ts';
import { type Duty, eachRun } from './duty.ts';

/** Time for a worker to commit a cancelled rollout: it reads the cancel within a second, and then stores the trajectory. */
const WORKERS_TIME_MS = 15_000;
const AT_ONCE = 32;
/** All cancel marks are read at this interval and when one is added; otherwise only rollouts that were running are checked. */
const ALL_MARKS_MS = 5_000;

/** @param waitMs how long to wait for the worker of a running rollout */
export function commitCancelled(waitMs = WORKERS_TIME_MS): Duty {
  /** Run → rollout → when (monotonic ms) maintenance began to wait for the worker of the rollout. */
  let waiting = new Map<string, Map<string, number>>();
  let epoch = -1;
  let readAllAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'commit-cancelled',
    everyMs: 500,
    async run(deps, signal) {
      const { farm, log } = deps;
      const now = await farm.cancel.epoch();
      const all = now !== epoch || performance.now() - readAllAt > ALL_MARKS_MS;
      const stillWaiting = new Map<string, Map<string, number>>();
      let committed = 0;
      // The unfinished runs are read after the epoch, so that a run cancelled in between does not count as visited.
      const visits = all ? { ...deps, unfinishedRuns: () => farm.groups.unfinishedRuns() } : deps;
      await eachRun(this.name, visits, signal, async (run) => {
        const since = waiting.get(run.run_id) ?? new Map<string, number>();
        const running = new Map<string, number>();
        const parts = all
          ? cancelledParts(farm, run.run_id)
          : stillOpenPart(farm, run.run_id, [...since.keys()]);
        for await (const ids of parts) {
          if (signal.aborted) break;
          committed += await commitPart(farm, run, ids, { since, running, waitMs });
        }
        if (running.size > 0) stillWaiting.set(run.run_id, running);
      });
      waiting = stillWaiting;
      if (all && !signal.aborted) {
        epoch = now;
        readAllAt = performance.now();
      }
      if (committed > 0) log.info({ rollouts: committed }, 'committed cancelled rollouts without a worker');
    },
  };
}

/** Yields the cancelled rollouts of a run without a result. The cost depends on the number of cancels, not on the size of the run. */
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

async function* stillOpenPart(farm: Farm, runId: string, ids: readonly string[]): AsyncGenerator<string[]> {
  if (ids.length > 0) yield await farm.groups.stillOpen(runId, ids);
}

async function commitPart(
  farm: Farm,
  run: RunRecord,
  ids: readonly string[],
  wait: { since: ReadonlyMap<string, number>; running: Map<string, number>; waitMs: number },
): Promise<number> {
  const { since, running, waitMs } = wait;
  const reasons = [...(await farm.cancel.isCancelled(ids))];
  if (reasons.length === 0) return 0;
  const living = await livingWorkers(farm);
  let committed = 0;
  for (let at = 0; at < reasons.length; at += AT_ONCE) {
    const part = reasons.slice(at, at + AT_ONCE).map(async ([id, reason]) => {
      const journal = await farm.journal.read(id);
      const from = since.get(id) ?? performance.now();
      if (workerOf(journal, living) !== null && performance.now() - from < waitMs) running.set(id, from);
      else if (await commitUnowned(farm, run, id, journal, { outcome: 'cancelled', cancelReason: reason }))
        committed += 1;
    });
    await Promise.all(part);
  }
  return committed;
}
