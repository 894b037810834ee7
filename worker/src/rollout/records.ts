/** Reads the records of a job before its claim, so that a job for another software version costs no attempt. */
import {
  type Instance,
  isDamagedInstance,
  isNotOurs,
  type Read,
  type RolloutJob,
  type RunRecord,
} from '@swefarm/shared';
import { abortOf } from './abort.ts';
import { type AfterAttempt, DONE, HAND_BACK } from './context.ts';
import type { AttemptServices } from './services.ts';
import { type AnswerWait, retryUntilAnswered } from './untilanswered.ts';

const NOT_OURS_MS = 5_000;

type Records = { run: RunRecord; instance: Read<Instance> };

/** Returns the records of the job's run and instance, or what to do with a job whose records are missing or need another version. */
export async function readRecords(
  job: RolloutJob,
  services: AttemptServices,
  signal: AbortSignal,
): Promise<Records | AfterAttempt> {
  const { farm, log } = services;
  const how: AnswerWait = { log, signal, endedBy: ['drain'] };
  try {
    const read = () => Promise.all([farm.runs.get(job.run_id), instanceOf(job, services)]);
    const [run, instance] = await retryUntilAnswered('run record and instance', read, how);
    if (run && instance) return { run, instance };
    log.warn({ rollout_id: job.rollout_id }, 'job dropped: the records of its run are gone');
    return DONE;
  } catch (error) {
    if (error === abortOf(signal)) return HAND_BACK;
    if (!isNotOurs(error)) throw error;
    return { next: 'later', delayMs: NOT_OURS_MS, notOurs: error.message };
  }
}

/** A damaged record is damaged for every worker, so its rollouts are claimed and committed as failed. */
async function instanceOf(job: RolloutJob, { farm }: AttemptServices): Promise<Read<Instance> | null> {
  try {
    const value = await farm.runs.getInstance(job.run_id, job.instance_id);
    return value && { value };
  } catch (error) {
    if (isDamagedInstance(error)) return { problem: error.message };
    throw error;
  }
}
