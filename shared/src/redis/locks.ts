/** The locks of jobs in work. BullMQ renews none that has run out; after an outage that would be every one of a farm. */
import type { Redis } from 'ioredis';
import type { Keys } from './keys.ts';
import { QUEUES, queueSettings } from './queue.ts';
import { loadScript } from './script.ts';

export type HeldJob = {
  job: string;
  token: string;
  /** The journal says that the rollout is still this worker's: its job is taken back even from the queue. */
  back: boolean;
};

export type Locks = {
  /** Renews them, taking again what has run out and nobody has; answers the jobs that are somebody else's, or gone. */
  renew(held: readonly HeldJob[]): Promise<Set<string>>;
};

const BATCH = 500;

export function createLocks(redis: Redis, keys: Keys): Locks {
  const script = loadScript(redis, 'locks_renew');
  const [queue] = QUEUES;
  const lists = ['active', 'stalled', 'wait', 'paused', 'prioritized', 'delayed'].map((part) =>
    keys.queue(queue, part),
  );
  return {
    async renew(held) {
      const lost = new Set<string>();
      for (let at = 0; at < held.length; at += BATCH) {
        const batch = held.slice(at, at + BATCH);
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
