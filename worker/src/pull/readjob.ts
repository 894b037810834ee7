import { needsOf, problemOf, RolloutJob, UNDERSTOOD } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Job } from './queue.ts';

export type JobReader = {
  /** Returns null when the job is damaged or needs a newer version. The job then waits for a worker of that version. */
  read(job: Job): RolloutJob | null;
  /** Logs that a rollout is left to another version, once for each run. */
  logNotOurs(rolloutId: string, problem: string): void;
};

export function createJobReader(log: Pick<Logger, 'warn'>): JobReader {
  const logged = new Set<string>();
  const logNotOurs = (rolloutId: string, problem: string): void => {
    const runId = rolloutId.slice(0, rolloutId.indexOf('.'));
    if (!logged.has(runId))
      log.warn({ rollout_id: rolloutId, problem }, 'rollout left to another version, at no cost');
    logged.add(runId);
  };
  return {
    read(job) {
      const needs = needsOf(job.data);
      const read = RolloutJob.safeParse(job.data);
      if (needs <= UNDERSTOOD && read.success) return read.data;
      logNotOurs(job.id ?? '', read.success ? `it needs level ${needs}` : problemOf(read.error));
      return null;
    },
    logNotOurs,
  };
}
