/** The unfinished runs, each for itself: one that cannot be read, or that a duty stumbles over, keeps no other from its turn. */
import {
  describeUnreadableRun,
  errorMessage,
  type Farm,
  type RunRecord,
  UnusableError,
} from '@swefarm/shared';
import type { MaintenanceDeps } from './maintenance.ts';

/** What was said of runs that were passed over, by duty and run: once is enough. */
const said = new WeakMap<Farm, Map<string, string>>();

/**
 * Calls `visit` for the unfinished runs, one after the other, until the signal aborts; `now` is the time by
 * Redis's clock. Throws UnusableError when Redis is away: that is no fault of a run.
 */
export async function eachRun(
  duty: string,
  { farm, log, metrics }: MaintenanceDeps,
  signal: AbortSignal,
  visit: (run: RunRecord, now: number) => Promise<void>,
): Promise<void> {
  const known = said.get(farm) ?? new Map<string, string>();
  said.set(farm, known);
  const { now, runs, unreadable } = await farm.groups.unfinishedRuns();
  const say = (key: string, text: string, fields: object): void => {
    if (known.get(key) !== text) log.error(fields, text);
    known.set(key, text);
  };
  for (const run of unreadable) {
    say(run.run_id, describeUnreadableRun(run), { run: run.run_id, problem: run.problem });
  }
  metrics.runsSkipped.set(unreadable.length);
  for (const run of runs) {
    if (signal.aborted) return;
    const key = `${duty} ${run.run_id}`;
    try {
      await visit(run, now);
      known.delete(key);
    } catch (error) {
      if (signal.aborted || error instanceof UnusableError) throw error;
      const err = errorMessage(error);
      say(key, `a duty of the keeper failed for this run; tried again: ${err}`, {
        duty,
        run: run.run_id,
        err,
      });
    }
  }
}
