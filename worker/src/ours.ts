/** Whether a claimed job is for this version of the software: asked before its claim, so that what is not costs no attempt. */
import { isNotOurs, type RolloutJob, type RunRecord } from '@swefarm/shared';
import { abortOf } from './abort.ts';
import type { Next } from './ending.ts';
import { insist } from './insist.ts';
import type { Node } from './node.ts';

/** How soon a rollout that this version leaves to another is looked at again. */
const NOT_OURS_MS = 5_000;

/** The record of the job's run; or what becomes of a job whose run is gone, or is only for another version. */
export async function runOf(
  job: RolloutJob,
  { farm, log }: Node,
  signal: AbortSignal,
): Promise<RunRecord | Next> {
  try {
    const read = (): Promise<RunRecord | null> => farm.runs.get(job.run_id);
    const run = await insist('run record', read, { log, signal, endedBy: ['drain'] });
    if (run) return run;
    log.warn({ rollout_id: job.rollout_id }, 'the record of this run is gone; the job is dropped');
    return { next: 'done' };
  } catch (error) {
    if (error === abortOf(signal)) return { next: 'hand_back', gone: Promise.resolve() };
    if (!isNotOurs(error)) throw error;
    return { next: 'later', delayMs: NOT_OURS_MS, notOurs: error.message };
  }
}
