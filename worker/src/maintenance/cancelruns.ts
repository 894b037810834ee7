/** Cancels rollouts that nobody needs any more. */
import {
  type CancelReason,
  cancelOrphans,
  DEFAULT_POLICY,
  followsPolicy,
  versionsBehind,
} from '@swefarm/shared';
import { type Duty, type DutyDeps, dutyOfRuns } from './duty.ts';

/** Cancels the rollouts that have no result at the run's deadline. */
export const cancelExpiredRuns = dutyOfRuns(
  'cancel-expired-runs',
  1_000,
  async ({ run_id, deadline_at, open }, deps, now) => {
    // An open run accepts calls for a day, so no single deadline applies to all of them.
    if (open || deadline_at === null || now < deadline_at) return;
    await cancelRun(deps, run_id, 'deadline', 'run cancelled: its deadline has passed');
  },
);

/**
 * Cancels runs whose submitted policy version is too far behind. An open run has no version of its own: the worker of each rollout cancels
 * the rollout if its first turn is too old.
 */
export const cancelStaleRuns = dutyOfRuns('cancel-stale-runs', 1_000, async (run, deps) => {
  if (run.max_staleness === null || run.open || !run.policy?.version) return;
  const [policy] = await deps.farm.policies.get([run.policy.name ?? DEFAULT_POLICY]);
  if (!policy || !followsPolicy(run.policy, policy)) return;
  const behind = versionsBehind(policy, run.policy.version);
  if (behind === null || behind <= run.max_staleness) return;
  const why = 'run cancelled: it is too many versions behind its policy';
  await cancelRun(deps, run.run_id, 'stale', why, { behind });
});

/** Cancels a run unless it is already cancelled or has no open rollouts. */
async function cancelRun(
  { farm, log }: DutyDeps,
  runId: string,
  reason: CancelReason,
  why: string,
  fields: object = {},
): Promise<void> {
  if ((await farm.cancel.runCancelled(runId)) !== null) return;
  const open = await farm.groups.left(runId);
  if (open === 0) return;
  log.info({ run: runId, ...fields, open }, why);
  await farm.cancel.cancelRun(runId, reason);
}

/** Cancels runs whose lease has expired. */
export const cancelAbandonedRuns: Duty = {
  name: 'cancel-abandoned-runs',
  everyMs: 5_000,
  async run(deps, signal) {
    for (const id of await deps.farm.runLeases.overdue()) {
      signal.throwIfAborted();
      await cancelRun(deps, id, 'lease', 'run cancelled: its submitter did not renew the lease');
      await deps.farm.runLeases.drop(id);
    }
  },
};

/** Cancels rollouts whose callers are gone, including callers of dead gateways. */
export const cancelAbandonedCalls: Duty = {
  name: 'cancel-abandoned-calls',
  everyMs: 5_000,
  async run({ farm, log }) {
    const cancelled = await cancelOrphans(farm);
    if (cancelled.length > 0)
      log.info({ rollouts: cancelled }, 'cancelled abandoned rollouts: no caller is connected');
  },
};

/** A worker ends its session within two seconds after the lease expires, so a session expired for longer than this has no worker. */
const SESSION_GRACE_MS = 15_000;

/** Ends expired sessions that no worker has taken. A worker watches the leases of its sessions itself. */
export const cancelAbandonedSessions: Duty = {
  name: 'cancel-abandoned-sessions',
  everyMs: 5_000,
  async run({ farm, log }, signal) {
    for (const id of await farm.sessions.overdue(SESSION_GRACE_MS)) {
      signal.throwIfAborted();
      const session = await farm.sessions.state(id);
      if (session && session.state !== 'ended') {
        await farm.cancel.cancelRollouts([session.rollout_id], 'lease');
        log.info({ rollout_id: session.rollout_id }, 'session cancelled: its lease has expired');
      }
      await farm.sessions.end(id, 'lease');
    }
  },
};
