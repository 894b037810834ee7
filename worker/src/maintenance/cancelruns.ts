import { type CancelReason, DEFAULT_POLICY, followsPolicy, versionsBehind } from '@swefarm/shared';
import { type Duty, type DutyDeps, eachRun } from './duty.ts';

/** Cancels the rollouts that have no result at the run's deadline. */
export const cancelExpiredRuns: Duty = {
  name: 'cancel-expired-runs',
  everyMs: 1_000,
  async run(deps, signal) {
    await eachRun(this.name, deps, signal, async ({ run_id, deadline_at, open }, now) => {
      // An open run accepts calls for a day, so no single deadline applies to all of them.
      if (open || deadline_at === null || now < deadline_at) return;
      await cancelRun(deps, run_id, 'deadline', 'run cancelled: its deadline has passed');
    });
  },
};

/**
 * Cancels runs whose submitted policy version is too far behind. An open run has no version of its own: the worker of each rollout cancels
 * the rollout if its first turn is too old.
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
      const why = 'run cancelled: it is too many versions behind its policy';
      await cancelRun(deps, run.run_id, 'stale', why, { behind });
    });
  },
};

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
