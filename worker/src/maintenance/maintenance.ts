/**
 * Maintenance: duties for rollouts that no worker is running. One worker at a time does them, by a lease in Redis. Every duty may be
 * interrupted anywhere and restarted by the next worker, or run twice at once.
 */
import { createLazy, errorMessage, type Farm, sleepAtMost, UNDERSTOOD } from '@swefarm/shared';
import type { Duty, DutyDeps, MaintenanceDeps } from './duty.ts';

/** The lease's name in Redis; it must be the same in every version of the software. */
const LEASE = 'keeper';
/** After this time another worker replaces one that died. */
const LEASE_MS = 10_000;
const TICK_MS = 1_000;
/** How often to check whether a newer worker should have the lease, and for how long this one then does not take it. */
const NEWER_EVERY_MS = 5_000;
const STEP_BACK_MS = 15_000;

/** Does the duties while `worker` holds the lease, until the signal aborts; then gives the lease back. */
export async function runMaintenance(
  worker: string,
  duties: readonly Duty[],
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<void> {
  const { farm, log } = deps;
  let held = false;
  while (!signal.aborted) {
    try {
      const holds = await farm.leases.hold(LEASE, worker, LEASE_MS);
      if (holds !== held)
        log.info(
          { worker },
          holds ? 'this worker does the maintenance now' : 'maintenance is left to another',
        );
      held = holds;
      if (!held) deps.metrics.runsSkipped.set(0);
      if (held) await whileHeld(worker, duties, deps, signal);
      if (held && !signal.aborted && (await isForNewer(farm))) {
        log.info({ worker }, 'maintenance is left to a newer worker: there are runs that only it can read');
        await farm.leases.release(LEASE, worker);
        await sleepAtMost(STEP_BACK_MS, signal);
      }
    } catch (error) {
      log.debug({ err: errorMessage(error) }, 'the lease of maintenance cannot be had');
    }
    await sleepAtMost(TICK_MS, signal);
  }
  if (held) await farm.leases.release(LEASE, worker).catch(() => undefined);
}

/** Whether there are runs of a newer version, and a living worker that understands more than this one. */
async function isForNewer(farm: Farm): Promise<boolean> {
  const { unreadable } = await farm.groups.unfinishedRuns();
  if (!unreadable.some(({ newer }) => newer)) return false;
  return (await farm.registry.list()).some(({ understands = 0 }) => understands > UNDERSTOOD);
}

/** Runs rounds of duties until the lease is lost, or a newer worker should have it. Renews it in parallel, so that a long duty does not lose it. */
async function whileHeld(
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
  let asked = performance.now();
  while (!until.aborted) {
    const round = { ...deps, logged, unfinishedRuns: createLazy(() => farm.groups.unfinishedRuns()).get };
    for (const duty of duties) {
      if (until.aborted) return;
      if (performance.now() < (due.get(duty.name) ?? 0)) continue;
      due.set(duty.name, performance.now() + duty.everyMs);
      await runDuty(duty, round, until);
    }
    if (performance.now() - asked > NEWER_EVERY_MS) {
      asked = performance.now();
      if (await isForNewer(farm)) return;
    }
    await sleepAtMost(TICK_MS / 4, until);
  }
}

function renewLease(farm: Farm, worker: string): Disposable & { lost: AbortSignal } {
  const lost = new AbortController();
  const timer = setInterval(() => {
    farm.leases.hold(LEASE, worker, LEASE_MS).then(
      (holds) => holds || lost.abort(),
      () => lost.abort(),
    );
  }, LEASE_MS / 4);
  return { lost: lost.signal, [Symbol.dispose]: () => clearInterval(timer) };
}

/** Runs one duty. A failure does not stop the other duties; the same failure is logged once. */
async function runDuty(duty: Duty, deps: DutyDeps, signal: AbortSignal): Promise<void> {
  const { log, logged } = deps;
  try {
    await duty.run(deps, signal);
    logged.delete(duty.name);
  } catch (error) {
    if (signal.aborted) return;
    const err = errorMessage(error);
    if (logged.get(duty.name) !== err)
      log.warn({ duty: duty.name, err }, 'a duty of maintenance failed; tried again');
    logged.set(duty.name, err);
  }
}
