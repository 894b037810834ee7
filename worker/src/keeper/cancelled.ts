/**
 * What was cancelled ends at once: a rollout that waits is committed here, one in work by its worker. A worker that
 * does not get round to it in time is not waited for; its commit is then late.
 */

import { heldBy, livingWorkers } from './holders.ts';
import type { Duty } from './keeper.ts';
import { eachRun } from './runs.ts';
import { settleUnheld } from './verdict.ts';

/** A worker hears of a cancel within a second, and needs a moment to save what was said. */
const WORKERS_TIME_MS = 15_000;
const AT_ONCE = 32;

/** `waitMs`: how long the worker of a running rollout is waited for. */
export function cancelledDuty(waitMs = WORKERS_TIME_MS): Duty {
  /** Rollout → since when (monotonic ms) its worker is waited for. A new keeper waits anew. */
  let waiting = new Map<string, number>();
  return {
    name: 'cancelled',
    everyMs: 500,
    async run(deps, signal) {
      const { farm, log } = deps;
      const still = new Map<string, number>();
      let settled = 0;
      await eachRun('cancelled', deps, signal, async (run) => {
        if (!(await farm.cancel.anyCancelled(run.run_id))) return;
        const marked = [...(await farm.cancel.isCancelled(await farm.groups.open(run.run_id)))];
        if (marked.length === 0) return;
        const living = await livingWorkers(farm);
        for (let at = 0; at < marked.length && !signal.aborted; at += AT_ONCE) {
          const part = marked.slice(at, at + AT_ONCE).map(async ([id, reason]) => {
            const journal = await farm.journal.read(id);
            const since = waiting.get(id) ?? performance.now();
            if (heldBy(journal, living) !== null && performance.now() - since < waitMs) {
              still.set(id, since);
            } else if (await settleUnheld(farm, run, id, journal, { cancelled: reason })) settled += 1;
          });
          await Promise.all(part);
        }
      });
      waiting = still;
      if (settled > 0) log.info({ rollouts: settled }, 'cancelled rollouts that nobody worked on');
    },
  };
}
