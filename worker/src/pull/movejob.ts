/** Moves jobs between the states of the queue, with the current lock of this worker. */
import { errorMessage } from '@swefarm/shared';
import type { Node } from '../node/node.ts';
import type { AfterAttempt } from '../rollout/context.ts';
import { retryUntilAnswered } from '../rollout/untilanswered.ts';
import type { JobLocks } from './joblocks.ts';
import type { Job } from './queue.ts';

/** Delay of a job while this worker is still ending an earlier attempt at it. */
const ENDING_MS = 1_000;

type Moving = { node: Pick<Node, 'active' | 'log'>; locks: JobLocks };

/** Moves a job after its attempt, unless another worker has the job. Resolves when nothing of the attempt is left on this node. */
export async function moveJob(job: Job, next: AfterAttempt, { node: { log }, locks }: Moving): Promise<void> {
  const id = job.id ?? '';
  const token = locks.toMove(id);
  if (token === null) return;
  try {
    if (next.next === 'later') await putOff(job, next, token, log);
    // The job becomes the first of its priority, and an idle worker claims it within a second (drainDelay).
    else if (next.next === 'hand_back') await untilMoved(() => job.moveToWait(token), log);
    else await untilMoved(() => job.moveToCompleted(null, token, false), log);
  } catch (error) {
    log.warn({ job: id, err: errorMessage(error) }, 'job not moved: this worker has lost it');
  } finally {
    locks.drop(id, token);
  }
  if (next.next === 'hand_back') await next.gone;
}

async function putOff(
  job: Job,
  { anywhere, passed, delayMs }: AfterAttempt & { next: 'later' },
  token: string,
  log: Node['log'],
): Promise<void> {
  const change = { ...(anywhere ? { anywhere } : {}), ...(passed ? { passed } : {}) };
  if (anywhere || passed) await untilMoved(() => job.updateData({ ...job.data, ...change }), log);
  await untilMoved(() => job.moveToDelayed(Date.now() + delayMs, token), log);
}

/** Retries until Redis moves the job, because BullMQ would count an unmoved job as failed and lose it. */
const untilMoved = (move: () => Promise<unknown>, log: Node['log']): Promise<unknown> =>
  retryUntilAnswered('job', move, { log });

/**
 * Returns whether a job that returned under a new lock still runs here, after a suspend of the machine or an outage of Redis. A running
 * attempt continues with the new lock; the job of an ending attempt is delayed.
 */
export async function isInWork(job: Job, token: string, { node, locks }: Moving): Promise<boolean> {
  const { active, log } = node;
  const id = job.id ?? '';
  if (locks.has(id) && !active.isEnding(id)) {
    locks.take(id, token);
    log.info({ job: id }, 'job returned while it runs here: continuing with its new lock');
    return true;
  }
  if (!active.ids().includes(id)) return false;
  await untilMoved(() => job.moveToDelayed(Date.now() + ENDING_MS, token), log);
  return true;
}
