/** The worker's only adapter to BullMQ. */
import { errorMessage, QUEUES, queueSettings } from '@swefarm/shared';
import { Job, WaitingError, Worker } from 'bullmq';
import type { Node } from '../node/node.ts';

export type { Job };

export type Queue = ReturnType<typeof openQueue>;

/** Starts to claim at once. `handle` moves each job itself, so BullMQ must do nothing more with the job. */
export function openQueue(
  { farm, log }: Pick<Node, 'farm' | 'log'>,
  { seats, prefix }: { seats: number; prefix: string },
  handle: (job: Job, token: string) => Promise<void>,
) {
  const [name] = QUEUES;
  const worker = new Worker(
    name,
    async (job: Job, token = '') => {
      await handle(job, token);
      throw new WaitingError();
    },
    {
      connection: farm.bullConnection(),
      prefix,
      concurrency: seats,
      ...queueSettings,
      // BullMQ renews locks by the wall clock of the node, and does not take an expired lock again.
      skipLockRenewal: true,
    },
    farm.bullBackend,
  );
  worker.on('error', (error) => log.warn({ err: errorMessage(error) }, 'queue'));
  worker.on('failed', (job, error) =>
    log.error({ job: job?.id, err: error }, 'job failed in the queue: a bug of the farm'),
  );
  return {
    /** Sets how many jobs are claimed in parallel; 0: none. */
    setSeats(free: number): void {
      worker.concurrency = Math.max(1, free);
      const stops = free <= 0;
      if (stops !== worker.isPaused()) void (stops ? worker.pause(true) : worker.resume());
    },
    pause: () => worker.pause(true),
    find: (id: string): Promise<Job | undefined> => Job.fromId(worker, id),
    /** Returns false when the lock no longer exists. */
    renewLock: async (job: Job, token: string) =>
      (await job.extendLock(token, queueSettings.lockDuration)) === 1,
    /** Stops claiming and waits for running jobs; with `force` it does not wait. */
    close: (force?: boolean) => worker.close(force),
  };
}
