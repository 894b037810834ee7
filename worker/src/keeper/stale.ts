/**
 * A run that was submitted for weights which the policy has left too far behind is not worth finishing. Open runs are for no
 * weights in particular: of them the worker of each rollout cancels what began too long ago.
 */
import { DEFAULT_POLICY, followsPolicy, type RunRecord, versionsBehind } from '@swefarm/shared';
import type { Duty } from './keeper.ts';

export const stale: Duty = {
  name: 'stale',
  everyMs: 1_000,
  async run({ farm, log }) {
    const { runs } = await farm.groups.unfinishedRuns();
    const bounded = runs.filter((run) => run.max_staleness !== null && !run.open && run.policy?.version);
    const policies = new Map(
      (await farm.policies.get([...new Set(bounded.map(policyOf))])).map((policy) => [policy.name, policy]),
    );
    for (const run of bounded) {
      const policy = policies.get(policyOf(run));
      if (!policy || !run.policy || !followsPolicy(run.policy, policy)) continue;
      const behind = versionsBehind(policy, run.policy.version);
      if (behind === null || behind <= (run.max_staleness ?? behind)) continue;
      const open = await farm.groups.open(run.run_id);
      const marked = await farm.cancel.isCancelled(open);
      if (open.every((id) => marked.has(id))) continue;
      log.info(
        { run: run.run_id, behind, open: open.length },
        'a run is too many versions behind its policy',
      );
      await farm.cancel.cancelRun(run.run_id, 'stale');
    }
  },
};

const policyOf = (run: RunRecord): string => run.policy?.name ?? DEFAULT_POLICY;
