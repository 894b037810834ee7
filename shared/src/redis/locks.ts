/** Renews the locks of running jobs. After an outage all locks have expired, and BullMQ does not renew expired locks. */
import type { Store } from './part.ts';
import { QUEUES, queueSettings } from './queue.ts';
import { loadScript } from './script.ts';

/** `back`: the journal contains the attempt of this worker, so that the job may be removed from the queue again. */
type LockedJob = { job: string; token: string; back: boolean };

const BATCH = 500;

export function createLocks({ redis, keys }: Store) {
  const script = loadScript(redis, 'locks_renew');
  const [queue] = QUEUES;
  const lists = ['active', 'stalled', 'wait', 'paused', 'prioritized', 'delayed'].map((part) =>
    keys.queue(queue, part),
  );
  return {
    /** Renews or reacquires locks. Returns the jobs that belong to other workers or were removed. */
    async renew(jobs: readonly LockedJob[]): Promise<Set<string>> {
      const lost = new Set<string>();
      for (let at = 0; at < jobs.length; at += BATCH) {
        const batch = jobs.slice(at, at + BATCH);
        const reply = await script(
          [...lists, ...batch.map(({ job }) => keys.queue(queue, `${job}:lock`))],
          [
            queueSettings.lockDuration,
            ...batch.flatMap(({ job, token, back }) => [job, token, back ? 1 : 0]),
          ],
        );
        for (const job of reply as string[]) lost.add(job);
      }
      return lost;
    },
  };
}
