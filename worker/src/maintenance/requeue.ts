/**
 * Queues rollouts without a job: refills and draws that the commit opened, rollouts of an interrupted submit, and rollouts whose job the queue lost
 * or delays for hours. A duplicate job is harmless, because its claim finds the result.
 */
import { type Farm, type RunRecord, UnusableError } from '@swefarm/shared';
import { type Duty, dutyOfRuns, eachRun } from './duty.ts';

/** Delay above which a job is queued at once: longer delays come from a worker whose clock was ahead. */
const FAR_MS = 3_600_000;

async function queueAgain(farm: Farm, run: RunRecord, open: readonly string[]): Promise<number> {
  const missing = await farm.jobs.missing(open);
  await farm.jobs.enqueue(run, missing);
  return missing.length;
}

export const requeueLostJobs: Duty = {
  name: 'requeue-lost-jobs',
  everyMs: 15_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    const late = await farm.jobs.hasten(FAR_MS);
    if (late.length > 0) log.warn({ rollouts: late.length }, 'queued rollouts that were delayed for hours');
    await eachRun(this.name, deps, signal, async (run) => {
      let open = 0;
      let queued = 0;
      let unread: unknown = null;
      for await (const ids of farm.groups.openParts(run.run_id)) {
        if (signal.aborted) return;
        open += ids.length;
        try {
          queued += await queueAgain(farm, run, ids);
        } catch (error) {
          if (error instanceof UnusableError) throw error;
          unread = error;
        }
      }
      if (open === 0) await farm.groups.retire(run.run_id);
      if (queued > 0) log.warn({ run: run.run_id, rollouts: queued }, 'queued rollouts that had no job');
      if (unread !== null) throw unread;
    });
  },
};

export const queueRefills = dutyOfRuns('queue-refills', 1_000, async (run, { farm, log }) => {
  if (run.refills === 0 && run.until === null) return;
  const groups = await farm.results.groups(run.run_id);
  // A group that a commit drew has no result yet.
  const waiting = [...groups].filter(
    ([, { refilled, left, size }]) => left > 0 && (refilled > 0 || (run.until !== null && left === size)),
  );
  if (waiting.length === 0) return;
  const instanceIds = waiting.map(([instanceId]) => instanceId);
  let queued = 0;
  for await (const ids of farm.groups.openParts(run.run_id, instanceIds))
    queued += await queueAgain(farm, run, ids);
  if (queued > 0) log.info({ run: run.run_id, rollouts: queued }, 'queued rollouts of refills and draws');
});
