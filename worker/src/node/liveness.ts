/**
 * Whether a worker that cannot be seen from here (its process is in another namespace) is dead. Right after Redis was away, and when
 * this worker has just started, living workers may not be listed yet: only one that was missed for long, while this one was listed, is dead.
 */

/** Two sweeps apart, and much longer than a worker takes to come back to Redis. */
const MISSED_MS = 115_000;

export type WorkerLiveness = {
  /** @param listed workers that the farm knows at this moment */
  isDead(worker: string, listed: ReadonlySet<string>, self: string): boolean;
};

/** `now`: monotonic milliseconds. */
export function createWorkerLiveness(now: () => number = () => performance.now()): WorkerLiveness {
  const since = new Map<string, number>();
  return {
    isDead(worker, listed, self) {
      // Our own beats have not come through since: the others' may not have either.
      if (!listed.has(self)) since.clear();
      if (listed.has(worker)) since.delete(worker);
      if (!listed.has(self) || listed.has(worker)) return false;
      const missed = since.get(worker) ?? now();
      since.set(worker, missed);
      return now() - missed >= MISSED_MS;
    },
  };
}
