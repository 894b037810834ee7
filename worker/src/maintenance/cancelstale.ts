/**
 * A run that was submitted for weights which the policy has left too far behind is not worth finishing. Open runs are for no
 * weights in particular: of them the worker of each rollout cancels what began too long ago.
 */
import { DEFAULT_POLICY, followsPolicy, type RunRecord, versionsBehind } from '@swefarm/shared';
import type { Duty } from './maintenance.ts';
import { eachRun } from './runs.ts';

export const stale: Duty = {
  name: 'stale',
  everyMs: 1_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    await eachRun('stale', deps, signal, async (run) => {
      if (run.max_staleness === null || run.open || !run.policy?.version) return;
      const [policy] = await farm.policies.get([policyOf(run)]);
      if (!policy || !followsPolicy(run.policy, policy)) return;
      const behind = versionsBehind(policy, run.policy.version);
      if (behind === null || behind <= run.max_staleness) return;
      if ((await farm.cancel.runCancelled(run.run_id)) !== null) return;
      const open = await farm.groups.left(run.run_id);
      if (open === 0) return;
      log.info({ run: run.run_id, behind, open }, 'a run is too many versions behind its policy');
      await farm.cancel.cancelRun(run.run_id, 'stale');
    });
  },
};

const policyOf = (run: RunRecord): string => run.policy?.name ?? DEFAULT_POLICY;
