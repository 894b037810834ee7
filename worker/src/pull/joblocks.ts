/**
 * Renews this worker's attempts in the journal and the locks of their jobs. After an outage of Redis or a suspend of the machine, takes
 * expired locks again before another worker can.
 */
import { errorMessage, sleepAtMost } from '@swefarm/shared';
import type { Node } from '../node/node.ts';

/** Interval of renewals. A lock lasts several intervals; a renewal that waits for Redis succeeds as soon as Redis is back. */
const RENEW_MS = 3_000;

export type JobLocks = ReturnType<typeof startJobLocks>;

type Lock = { token: string; state: 'valid' | 'lost' | 'moving' };

/** Aborts attempts as `superseded` when another worker has claimed or committed their rollout. */
export function startJobLocks({ farm, identity, active, metrics, log }: Node) {
  const locks = new Map<string, Lock>();
  const over = new AbortController();

  const lose = (job: string, lock: Lock): void => {
    if (lock.state !== 'valid') return;
    lock.state = 'lost';
    metrics.lockLosses.inc();
    log.warn({ job }, 'lock lost: running on until another worker claims the rollout');
  };
  const renew = async (): Promise<void> => {
    const running = active.list();
    const superseded = await farm.journal.renewAttempts(identity, running);
    for (const id of superseded) active.abort(id, 'superseded');
    const inWork = new Set(running.map(({ rollout_id }) => rollout_id).filter((id) => !active.isEnding(id)));
    const current = [...locks].filter(([job]) => !superseded.has(job));
    const gone = await farm.locks.renew(
      current.map(([job, { token }]) => ({ job, token, back: inWork.has(job) })),
    );
    for (const [job, lock] of current) {
      if (gone.has(job)) lose(job, lock);
      else if (lock.state === 'lost') lock.state = 'valid';
    }
  };
  const renewing = (async () => {
    while (!over.signal.aborted) {
      await renew().catch((error: unknown) => log.debug({ err: errorMessage(error) }, 'locks not renewed'));
      await sleepAtMost(RENEW_MS, over.signal);
    }
  })();

  return {
    /** Starts to renew this lock of the job, instead of an earlier lock. */
    take: (job: string, token: string) => void locks.set(job, { token, state: 'valid' }),
    /** Returns whether the job is running on this worker and is not about to be moved. */
    has: (job: string): boolean => (locks.get(job)?.state ?? 'moving') !== 'moving',
    /** Returns the lock with which to move the job; null: this worker has no valid lock of the job. The lock is renewed until `drop`. */
    toMove(job: string): string | null {
      const lock = locks.get(job);
      if (!lock || lock.state === 'lost') {
        locks.delete(job);
        return null;
      }
      lock.state = 'moving';
      return lock.token;
    },
    drop(job: string, token: string): void {
      if (locks.get(job)?.token === token) locks.delete(job);
    },
    async end(): Promise<void> {
      over.abort();
      await renewing;
    },
  };
}
