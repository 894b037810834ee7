/**
 * The keeper: what the farm owes to rollouts that no worker is busy with. One worker at a time does it, by a lease in
 * Redis. Every duty may be cut off anywhere and begun again by the next keeper, or run twice at once.
 */
import { errorMessage, type Farm, sleepAtMost, UNDERSTOOD, type WorkerMetrics } from '@swefarm/shared';
import type { Logger } from 'pino';

export type MaintenanceDeps = { farm: Farm; log: Logger; metrics: WorkerMetrics };

export type Duty = {
  name: string;
  /** Least milliseconds between two rounds. */
  everyMs: number;
  run(deps: MaintenanceDeps, signal: AbortSignal): Promise<void>;
};

const LEASE = 'keeper';
/** A keeper that died is followed by another after this long. */
const LEASE_MS = 10_000;
const TICK_MS = 1_000;
/** How often a keeper asks whether a newer worker should be one in its place, and for how long it then leaves the lease to others. */
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
      if (holds !== held) log.info({ keeper: worker }, holds ? 'keeper of the farm now' : 'keeper no more');
      held = holds;
      if (!held) deps.metrics.runsSkipped.set(0);
      if (held) await whileHeld(worker, duties, deps, signal);
      if (held && !signal.aborted && (await newerShouldKeep(farm))) {
        log.info(
          { keeper: worker },
          'the lease is left to a newer worker: there are runs that only it can keep',
        );
        await farm.leases.release(LEASE, worker);
        await sleepAtMost(STEP_BACK_MS, signal);
      }
    } catch (error) {
      log.debug({ err: errorMessage(error) }, 'no lease to keep by');
    }
    await sleepAtMost(TICK_MS, signal);
  }
  if (held) await farm.leases.release(LEASE, worker).catch(() => undefined);
}

/** Whether there are runs of a newer version, and a living worker that understands more than this one. */
async function newerShouldKeep(farm: Farm): Promise<boolean> {
  const { unreadable } = await farm.groups.unfinishedRuns();
  if (!unreadable.some(({ newer }) => newer)) return false;
  return (await farm.registry.list()).some(({ understands = 0 }) => understands > UNDERSTOOD);
}

/** Rounds of duties until the lease is lost, or a newer worker should have it. It is renewed beside them: a long duty must not lose it. */
async function whileHeld(
  worker: string,
  duties: readonly Duty[],
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<void> {
  const { farm } = deps;
  const lost = new AbortController();
  const renewing = setInterval(() => {
    const renewed = farm.leases.hold(LEASE, worker, LEASE_MS);
    renewed.then(
      (holds) => holds || lost.abort(),
      () => lost.abort(),
    );
  }, LEASE_MS / 4);
  const until = AbortSignal.any([signal, lost.signal]);
  const due = new Map<string, number>();
  let asked = performance.now();
  const said = new Map<string, string>();
  try {
    while (!until.aborted) {
      for (const duty of duties) {
        if (until.aborted) return;
        if (performance.now() < (due.get(duty.name) ?? 0)) continue;
        due.set(duty.name, performance.now() + duty.everyMs);
        await attend(duty, deps, until, said);
      }
      if (performance.now() - asked > NEWER_EVERY_MS) {
        asked = performance.now();
        if (await newerShouldKeep(deps.farm)) return;
      }
      await sleepAtMost(TICK_MS / 4, until);
    }
  } finally {
    clearInterval(renewing);
  }
}

/** A duty that fails keeps no other from its turn; the same failure is said once. */
async function attend(
  duty: Duty,
  deps: MaintenanceDeps,
  signal: AbortSignal,
  said: Map<string, string>,
): Promise<void> {
  try {
    await duty.run(deps, signal);
    said.delete(duty.name);
  } catch (error) {
    if (signal.aborted) return;
    const reason = errorMessage(error);
    if (said.get(duty.name) !== reason) {
      deps.log.warn({ duty: duty.name, err: reason }, 'a duty of the keeper failed; tried again');
    }
    said.set(duty.name, reason);
  }
}
