/** The only place of the worker that knows BullMQ: it hands jobs out, keeps their locks, and decides nothing about outcomes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, QUEUES, queueSettings, RolloutJob } from '@swefarm/shared';
import { DelayedError, type Job, WaitingError, Worker } from 'bullmq';
import { attemptRollout, type Next } from './attempt.ts';
import type { Node } from './node.ts';

const UNSETTLED_DELAY_MS = 5_000;
/** What handed-back attempts may take to remove their containers once the grace period is over. */
const HAND_BACK_MS = 9_000;

export type Pull = {
  /** Stops claiming without ending what runs, and starts again. */
  setPaused(paused: boolean): Promise<void>;
  /** No new jobs; what runs may finish for `graceMs`, then it is handed back. Resolves when nothing runs. */
  drain(graceMs: number): Promise<void>;
};

/** Starts to pull at once, up to `concurrency` rollouts side by side. */
export function startPull(node: Node, concurrency: number, prefix: string): Pull {
  let paused = false;
  let draining = false;

  /** Whatever escapes an attempt must not let BullMQ fail the job: it would be lost without a result. */
  const unforeseen = (error: unknown): Next => {
    node.log.error({ err: error }, 'an attempt could not be settled; its job is tried again');
    return { next: 'later', delayMs: UNSETTLED_DELAY_MS };
  };

  const process = async (job: Job, token?: string): Promise<void> => {
    const data = RolloutJob.parse(job.data);
    // A worker that pauses still takes one job with the read it had begun.
    const next: Next =
      draining || paused
        ? { next: 'hand_back', gone: Promise.resolve() }
        : await node.active
            .during(data.rollout_id, (signal) => attemptRollout(data, node, signal))
            .catch(unforeseen);
    if (next.next === 'later') {
      await job.moveToDelayed(Date.now() + next.delayMs, token);
      throw new DelayedError();
    }
    if (next.next === 'hand_back') {
      // At the head of its priority; an idle worker looks within a second (drainDelay).
      await job.moveToWait(token);
      await next.gone;
      throw new WaitingError();
    }
  };

  const [queue] = QUEUES;
  const worker = new Worker(queue, process, {
    connection: node.farm.bullConnection(),
    prefix,
    concurrency,
    ...queueSettings,
  });
  worker.on('error', (error) => node.log.warn({ err: errorMessage(error) }, 'queue'));
  worker.on('failed', (job, error) =>
    node.log.error({ job: job?.id, err: error }, 'a job failed in the queue: our bug'),
  );
  worker.on('lockRenewalFailed', (ids) => {
    // The attempt goes on: the journal, read by the heartbeat, tells whether somebody else has it by now.
    node.metrics.lockLosses.inc(ids.length);
    node.log.warn({ jobs: ids }, 'lost the lock; going on until another worker claims');
  });

  return {
    async setPaused(next) {
      paused = next;
      if (next) await worker.pause(true);
      else await worker.resume();
    },
    async drain(graceMs) {
      draining = true;
      const timer = new AbortController();
      const closed = worker.close().then(() => true);
      const graceOver = sleep(graceMs, false, { signal: timer.signal }).catch(() => false);
      if (!(await Promise.race([closed, graceOver]))) {
        node.active.abortAll('drain');
        const late = sleep(HAND_BACK_MS, false, { signal: timer.signal }).catch(() => false);
        if (!(await Promise.race([closed, late]))) {
          node.log.error(
            { active: node.active.list() },
            'attempts did not end in time; their locks will expire',
          );
          await worker.close(true);
        }
      }
      timer.abort();
    },
  };
}
