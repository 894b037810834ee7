/**
 * Removes sandboxes without a living owner on this host: those of dead workers of this farm, and this worker's own that no attempt
 * uses any more. Never removes what belongs to another living worker, or to another farm.
 */

import type { OwnedContainer, Owner, Runtime } from '@swefarm/sandbox';
import { createSemaphore, errorMessage, type Farm, isProcessAlive, onAbort } from '@swefarm/shared';
import type { Logger } from 'pino';
import type { Identity } from './identity.ts';

const SWEEP_MS = 60_000;
/** Limits parallel removals; a removal that an engine delays for minutes does not block the others. */
const REMOVALS_AT_ONCE = 8;
/** How long a sandbox of this worker may exist without an attempt, because attempts do not wait for removals. */
const FORGOTTEN_MS = 2 * 60_000;

/** Spans two sweeps, and is much longer than a worker takes to return to Redis. */
const MISSED_MS = 115_000;

export type ReaperDeps = {
  runtime: Runtime;
  self: Pick<Identity, 'farm' | 'worker' | 'pid' | 'pid_started'>;
  /** Lists the living workers, for owners whose processes cannot be seen from here. */
  registry: Pick<Farm['registry'], 'list'>;
  /** How long workers were missed; absent: a worker that is not listed is dead. */
  liveness?: WorkerLiveness;
  /** The attempts of this worker. */
  active: { list(): readonly { rollout_id: string; attempt: number }[] };
  log: Logger;
  /** Sandboxes of this worker without an attempt in earlier sweeps; kept between sweeps. */
  unused?: Unused;
  /** This worker is ending and needs none of its sandboxes any more. */
  ending?: boolean;
};

/** When each was first seen unused, by a monotonic clock: the wall clocks of an engine and a worker may differ by hours. */
export type Unused = Map<string, number>;

/** One sweep; returns how many sandboxes were removed. Failures are logged and left to the next sweep. */
export async function reap(deps: ReaperDeps): Promise<number> {
  const { runtime, self } = deps;
  await runtime.sweep?.();
  const mine = (await runtime.listOwned()).filter(({ owner }) => owner.farm === self.farm);
  const unused = unusedOf(mine, deps);
  const slots = createSemaphore(REMOVALS_AT_ONCE);
  // Waits for every removal, or a sweep that failed would overlap with the next.
  const ends = await Promise.allSettled(mine.map((one) => slots.run(() => removeUnowned(one, unused, deps))));
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  return ends.filter((end) => end.status === 'fulfilled' && end.value).length;
}

/** Whether the sandbox was removed. */
async function removeUnowned(one: OwnedContainer, unused: Unused, deps: ReaperDeps): Promise<boolean> {
  const { runtime, log } = deps;
  const why = await whyRemovable(one, unused, deps);
  if (why === null) return false;
  try {
    await runtime.remove(one.id);
    log.info({ sandbox: one.id, rollout_id: one.owner.rollout_id, owner: one.owner.worker }, why);
    return true;
  } catch (error) {
    log.warn({ sandbox: one.id, err: errorMessage(error) }, 'could not remove a sandbox without an owner');
    return false;
  }
}

/** This worker's sandboxes without an attempt, and since when; forgets those of earlier sweeps that are gone or in use again. */
function unusedOf(mine: readonly OwnedContainer[], { self, active, unused = new Map() }: ReaperDeps): Unused {
  const attempts = new Set(active.list().map(({ rollout_id, attempt }) => `${rollout_id} ${attempt}`));
  const now = performance.now();
  const found = mine
    .filter(({ owner }) => isOwn(owner, self) && !attempts.has(`${owner.rollout_id} ${owner.attempt}`))
    .map(({ id }) => [id, unused.get(id) ?? now] as const);
  unused.clear();
  for (const [id, since] of found) unused.set(id, since);
  return unused;
}

const isOwn = (owner: Owner, self: ReaperDeps['self']): boolean =>
  owner.worker === self.worker && owner.pid === self.pid && owner.pid_started === self.pid_started;

async function whyRemovable(one: OwnedContainer, unused: Unused, deps: ReaperDeps): Promise<string | null> {
  const { owner, id } = one;
  if (isOwn(owner, deps.self)) {
    const since = unused.get(id);
    if (since === undefined) return null;
    if (deps.ending) return 'removed a sandbox of this worker that was left';
    return performance.now() - since < FORGOTTEN_MS
      ? null
      : 'removed a sandbox of this worker that had no attempt';
  }
  const alive = isProcessAlive(owner) ?? (await isListed(owner.worker, deps));
  return alive ? null : 'removed the sandbox of a dead worker';
}

async function isListed(worker: string, { self, registry, liveness }: ReaperDeps): Promise<boolean> {
  const listed = new Set((await registry.list()).map((one) => one.worker));
  return liveness ? !liveness.isDead(worker, listed, self.worker) : listed.has(worker);
}

/**
 * Sweeps once a minute until the signal aborts; sweeps never overlap. The caller does the first sweep itself, before the worker
 * claims any job.
 */
export function startReaper(deps: ReaperDeps, onReaped: (count: number) => void, signal: AbortSignal): void {
  let sweeping = false;
  const timer = setInterval(() => {
    if (sweeping) return;
    sweeping = true;
    reap(deps)
      .then(onReaped, (error: unknown) =>
        deps.log.warn({ err: errorMessage(error) }, 'the sweep for left sandboxes failed'),
      )
      .finally(() => {
        sweeping = false;
      });
  }, SWEEP_MS);
  timer.unref();
  onAbort(signal, () => clearInterval(timer));
}

/** Distinguishes a dead worker from one that cannot be seen from here because its process is in another namespace. */
export type WorkerLiveness = {
  /** @param listed workers that the farm knows at this moment */
  isDead(worker: string, listed: ReadonlySet<string>, self: string): boolean;
};

/**
 * Right after an outage of Redis, or when this worker has just started, living workers may not be listed yet: a worker is dead only
 * when it has been missing for long while this worker was listed. `now`: monotonic milliseconds.
 */
export function createWorkerLiveness(now: () => number = () => performance.now()): WorkerLiveness {
  const since = new Map<string, number>();
  return {
    isDead(worker, listed, self) {
      // This worker's heartbeats did not reach Redis either.
      if (!listed.has(self)) since.clear();
      if (listed.has(worker)) since.delete(worker);
      if (!listed.has(self) || listed.has(worker)) return false;
      const missed = since.get(worker) ?? now();
      since.set(worker, missed);
      return now() - missed >= MISSED_MS;
    },
  };
}
