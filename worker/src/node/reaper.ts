/**
 * Removes sandboxes on this host without a living owner: those of dead workers of this farm, and those of this worker without an attempt.
 * Never removes sandboxes of another living worker or of another farm.
 */
import type { OwnedContainer, Owner, Runtime } from '@swefarm/sandbox';
import {
  createSemaphore,
  errorMessage,
  type Farm,
  isProcessAlive,
  onAbort,
  ownStartMark,
} from '@swefarm/shared';
import type { Logger } from 'pino';

const SWEEP_MS = 60_000;
const REMOVALS_AT_ONCE = 8;
/** How long a sandbox of this worker may exist without an attempt. Attempts do not wait for the removal of their sandboxes. */
const FORGOTTEN_MS = 2 * 60_000;

/** Time without a registry entry after which a worker counts as dead: much longer than a worker needs to reconnect to Redis. */
const MISSED_MS = 115_000;

/** Identifies a worker process in labels of containers, in the journal and in the registry. */
export type Identity = { farm: string; worker: string; node: string; pid: number; pid_started: string };

export function identify(farm: string, worker: string, node: string): Identity {
  return { farm, worker, node, pid: process.pid, pid_started: ownStartMark() };
}

export type ReaperDeps = {
  runtime: Runtime;
  self: Pick<Identity, 'farm' | 'worker' | 'pid' | 'pid_started'>;
  /** Lists the living workers, for owners whose processes this worker cannot see. */
  registry: Pick<Farm['registry'], 'list'>;
  /** Decides whether a worker that is not listed is dead; absent: it is dead. */
  liveness?: ReturnType<typeof createWorkerLiveness>;
  active: { list(): readonly { rollout_id: string; attempt: number }[] };
  log: Logger;
  /** Sandboxes of this worker that earlier sweeps found without an attempt. */
  unused?: Unused;
  ending?: boolean;
};

/** Sandbox id → when the sandbox was first seen unused, in monotonic ms: the clocks of an engine and a worker may differ by hours. */
type Unused = Map<string, number>;

/** Sweeps once, and returns how many sandboxes were removed. A failed removal is logged and left to the next sweep. */
export async function reap(deps: ReaperDeps): Promise<number> {
  const { runtime, self } = deps;
  await runtime.sweep?.();
  const mine = (await runtime.listOwned()).filter(({ owner }) => owner.farm === self.farm);
  const unused = unusedOf(mine, deps);
  const slots = createSemaphore(REMOVALS_AT_ONCE);
  // The sweep waits for every removal, so that a failed sweep does not overlap with the next.
  const ends = await Promise.allSettled(mine.map((one) => slots.run(() => removeUnowned(one, unused, deps))));
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  return ends.filter((end) => end.status === 'fulfilled' && end.value).length;
}

async function removeUnowned(one: OwnedContainer, unused: Unused, deps: ReaperDeps): Promise<boolean> {
  const { runtime, log } = deps;
  const why = await whyRemovable(one, unused, deps);
  if (why === null) return false;
  try {
    await runtime.remove(one.id);
    log.info({ sandbox: one.id, rollout_id: one.owner.rollout_id, owner: one.owner.worker }, why);
    return true;
  } catch (error) {
    log.warn({ sandbox: one.id, err: errorMessage(error) }, 'sandbox without an owner not removed');
    return false;
  }
}

/** Updates and returns `unused`, the sandboxes of this worker without an attempt. */
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

/** Returns whether a sandbox of the same farm is of this process. */
const isOwn = (owner: Owner, self: ReaperDeps['self']): boolean =>
  owner.worker === self.worker && owner.pid === self.pid && owner.pid_started === self.pid_started;

async function whyRemovable(one: OwnedContainer, unused: Unused, deps: ReaperDeps): Promise<string | null> {
  const { owner, id } = one;
  if (isOwn(owner, deps.self)) {
    const since = unused.get(id);
    if (since === undefined) return null;
    if (deps.ending) return 'removed a sandbox of this worker that was left';
    const isForgotten = performance.now() - since >= FORGOTTEN_MS;
    return isForgotten ? 'removed a sandbox of this worker that had no attempt' : null;
  }
  const alive = isProcessAlive(owner) ?? (await isListed(owner.worker, deps));
  return alive ? null : 'removed the sandbox of a dead worker';
}

async function isListed(worker: string, { self, registry, liveness }: ReaperDeps): Promise<boolean> {
  const listed = new Set((await registry.list()).map((one) => one.worker));
  return liveness ? !liveness.isDead(worker, listed, self.worker) : listed.has(worker);
}

/**
 * Sweeps once a minute until the signal aborts; sweeps never overlap. The caller does the first sweep itself, before the worker claims any
 * job.
 */
export function startReaper(deps: ReaperDeps, onReaped: (count: number) => void, signal: AbortSignal): void {
  let sweeping = false;
  const timer = setInterval(() => {
    if (sweeping) return;
    sweeping = true;
    reap(deps)
      .then(onReaped, (error: unknown) =>
        deps.log.warn({ err: errorMessage(error) }, 'sweep for left sandboxes failed'),
      )
      .finally(() => {
        sweeping = false;
      });
  }, SWEEP_MS);
  timer.unref();
  onAbort(signal, () => clearInterval(timer));
}

/**
 * Decides whether workers are dead whose processes this worker cannot see. After an outage of Redis or the start of this worker, living
 * workers may not be listed yet. So a worker is dead only when it has been missing for {@link MISSED_MS} while this worker was listed.
 * `now`: monotonic milliseconds.
 */
export function createWorkerLiveness(now: () => number = () => performance.now()) {
  const since = new Map<string, number>();
  return {
    /** @param listed workers in the registry at this moment */
    isDead(worker: string, listed: ReadonlySet<string>, self: string): boolean {
      // The heartbeats of this worker did not reach Redis either.
      if (!listed.has(self)) since.clear();
      if (listed.has(worker)) since.delete(worker);
      if (!listed.has(self) || listed.has(worker)) return false;
      const missingSince = since.get(worker) ?? now();
      since.set(worker, missingSince);
      return now() - missingSince >= MISSED_MS;
    },
  };
}
