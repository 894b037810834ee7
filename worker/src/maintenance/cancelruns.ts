/** Runs that are not worth finishing any more are cancelled, and say why. */
import { type CancelReason, DEFAULT_POLICY, followsPolicy, versionsBehind } from '@swefarm/shared';
import { type Duty, type DutyDeps, eachRun } from './duty.ts';

/** A run's deadline ends a step with what is there: whatever has no result by then is cancelled. */
export const cancelExpiredRuns: Duty = {
  name: 'cancel-expired-runs',
  everyMs: 1_000,
  async run(deps, signal) {
    await eachRun(this.name, deps, signal, async ({ run_id, deadline_at, open }, now) => {
      // A run that takes calls for a day has no instant at which all of them are over.
      if (open || deadline_at === null || now < deadline_at) return;
      await cancelRun(deps, run_id, 'deadline', 'the deadline of a run has passed');
    });
  },
};

/**
 * A run that was submitted for weights which the policy has left too far behind. Open runs are for no weights in particular: of them
 * the worker of each rollout cancels what began too long ago.
 */
export const cancelStaleRuns: Duty = {
  name: 'cancel-stale-runs',
  everyMs: 1_000,
  async run(deps, signal) {
    await eachRun(this.name, deps, signal, async (run) => {
      if (run.max_staleness === null || run.open || !run.policy?.version) return;
      const [policy] = await deps.farm.policies.get([run.policy.name ?? DEFAULT_POLICY]);
      if (!policy || !followsPolicy(run.policy, policy)) return;
      const behind = versionsBehind(policy, run.policy.version);
      if (behind === null || behind <= run.max_staleness) return;
      const why = 'a run is too many versions behind its policy';
      await cancelRun(deps, run.run_id, 'stale', why, { behind });
    });
  },
};

/** Once, and only while it has open rollouts. */
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
