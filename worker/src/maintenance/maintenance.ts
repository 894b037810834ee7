/**
 * Maintenance: duties for rollouts that no worker is running. One worker at a time does them, under a lease in Redis. Every duty may be
 * interrupted anywhere and restarted by another worker, or run twice in parallel.
 */
import { createLazy, errorMessage, type Farm, sleepAtMost, UNDERSTOOD } from '@swefarm/shared';
import type { Duty, DutyDeps, MaintenanceDeps } from './duty.ts';

/** Name of the lease in Redis; it must be the same in every version of the software. */
const LEASE = 'keeper';
const LEASE_MS = 10_000;
const TICK_MS = 1_000;
/** Interval of the check whether a newer worker should have the lease, and time for which this worker then does not acquire the lease. */
const NEWER_EVERY_MS = 5_000;
const STEP_BACK_MS = 15_000;

/** Runs the duties while `worker` has the lease, until the signal aborts. Then releases the lease. */
export async function runMaintenance(
  worker: string,
  duties: readonly Duty[],
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<void> {
  const { farm, log } = deps;
  let hasLease = false;
  while (!signal.aborted) {
    try {
      const acquired = await farm.leases.acquire(LEASE, worker, LEASE_MS);
      if (acquired !== hasLease)
        log.info({ worker }, acquired ? 'maintenance lease acquired' : 'maintenance lease lost');
      hasLease = acquired;
      if (!hasLease) deps.metrics.runsSkipped.set(0);
      if (hasLease) await runDuties(worker, duties, deps, signal);
      if (hasLease && !signal.aborted && (await isForNewer(farm))) {
        log.info({ worker }, 'maintenance lease released: some runs need a newer worker');
        await farm.leases.release(LEASE, worker);
        await sleepAtMost(STEP_BACK_MS, signal);
      }
    } catch (error) {
      log.debug({ err: errorMessage(error) }, 'maintenance lease not renewed');
    }
    await sleepAtMost(TICK_MS, signal);
  }
  if (hasLease) await farm.leases.release(LEASE, worker).catch(() => undefined);
}

/** Returns whether there are runs of a newer version, and a living worker that understands more than this worker. */
async function isForNewer(farm: Farm): Promise<boolean> {
  const { unreadable } = await farm.groups.unfinishedRuns();
  if (!unreadable.some(({ newer }) => newer)) return false;
  return (await farm.registry.list()).some(({ understands = 0 }) => understands > UNDERSTOOD);
}

/** Runs rounds of duties until the lease is lost or a newer worker should have it. Renews the lease in parallel to long duties. */
async function runDuties(
  worker: string,
  duties: readonly Duty[],
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<void> {
  const { farm } = deps;
  using lease = renewLease(farm, worker);
  const until = AbortSignal.any([signal, lease.lost]);
  const due = new Map<string, number>();
  const logged = new Map<string, string>();
  let checkedAt = performance.now();
  while (!until.aborted) {
    const round = { ...deps, logged, unfinishedRuns: createLazy(() => farm.groups.unfinishedRuns()).get };
    for (const duty of duties) {
      if (until.aborted) return;
      if (performance.now() < (due.get(duty.name) ?? 0)) continue;
      due.set(duty.name, performance.now() + duty.everyMs);
      await runDuty(duty, round, until);
    }
    if (performance.now() - checkedAt > NEWER_EVERY_MS) {
      checkedAt = performance.now();
      if (await isForNewer(farm)) return;
    }
    await sleepAtMost(TICK_MS / 4, until);
  }
}

function renewLease(farm: Farm, worker: string): Disposable & { lost: AbortSignal } {
  const lost = new AbortController();
  const timer = setInterval(() => {
    farm.leases.acquire(LEASE, worker, LEASE_MS).then(
      (renewed) => renewed || lost.abort(),
      () => lost.abort(),
    );
  }, LEASE_MS / 4);
  return { lost: lost.signal, [Symbol.dispose]: () => clearInterval(timer) };
}

async function runDuty(duty: Duty, deps: DutyDeps, signal: AbortSignal): Promise<void> {
  const { log, logged } = deps;
  try {
    await duty.run(deps, signal);
    logged.delete(duty.name);
  } catch (error) {
    if (signal.aborted) return;
    const err = errorMessage(error);
    if (logged.get(duty.name) !== err)
      log.warn({ duty: duty.name, err }, 'maintenance duty failed, retrying');
    logged.set(duty.name, err);
  }
}
