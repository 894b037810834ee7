/** The type of a maintenance duty, and a loop over the unfinished runs. */
import {
  describeUnreadableRun,
  errorMessage,
  type Farm,
  type RunRecord,
  UnusableError,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import type { WorkerMetrics } from '../metrics/workermetrics.ts';

export type MaintenanceDeps = { farm: Farm; log: Logger; metrics: WorkerMetrics };

export type DutyDeps = MaintenanceDeps & {
  /** Returns the unfinished runs, which are read once for all duties of a round. */
  unfinishedRuns(): ReturnType<Farm['groups']['unfinishedRuns']>;
  /** Last logged error by run and duty, so that each error is logged once. */
  logged: Map<string, string>;
};

export type Duty = {
  name: string;
  /** Minimum time between two rounds, in milliseconds. */
  everyMs: number;
  run(deps: DutyDeps, signal: AbortSignal): Promise<void>;
};

/** Creates a duty that visits the unfinished runs as {@link eachRun} does. */
export const dutyOfRuns = (
  name: string,
  everyMs: number,
  visit: (run: RunRecord, deps: DutyDeps, now: number, signal: AbortSignal) => Promise<void>,
): Duty => ({
  name,
  everyMs,
  run: (deps, signal) => eachRun(name, deps, signal, (run, now) => visit(run, deps, now, signal)),
});

/**
 * Calls `visit` for one unfinished run after the other until the signal aborts; `now` is the time of Redis. An error of one run is logged
 * and does not stop the others. Throws UnusableError when Redis is unavailable.
 */
export async function eachRun(
  duty: string,
  { log, logged, metrics, unfinishedRuns }: DutyDeps,
  signal: AbortSignal,
  visit: (run: RunRecord, now: number) => Promise<void>,
): Promise<void> {
  const logOnce = (key: string, text: string, fields: object): void => {
    if (logged.get(key) !== text) log.error(fields, text);
    logged.set(key, text);
  };
  const { now, runs, unreadable } = await unfinishedRuns();
  for (const run of unreadable)
    logOnce(run.run_id, describeUnreadableRun(run), { run: run.run_id, problem: run.problem });
  metrics.runsSkipped.set(unreadable.length);
  for (const run of runs) {
    if (signal.aborted) return;
    const key = `${duty} ${run.run_id}`;
    try {
      await visit(run, now);
      logged.delete(key);
    } catch (error) {
      if (signal.aborted || error instanceof UnusableError) throw error;
      const err = errorMessage(error);
      const fields = { duty, run: run.run_id, err };
      logOnce(key, `maintenance duty failed for a run, retrying: ${err}`, fields);
    }
  }
}
