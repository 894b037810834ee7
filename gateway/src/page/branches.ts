/** Finds the runs that continue a rollout, or the rollouts of a run, directly or through other branches. */
import { parseRolloutId } from '@swefarm/shared';

/** A run of branches: `of` is the rollout that its rollouts continue. */
export type BranchRun = { run_id: string; of: string; turn: number; group_size: number };

/** Returns the run id of a run or a rollout. */
export const runOf = (id: string): string => (id.includes('.') ? parseRolloutId(id).runId : id);

/** Returns the runs of branches below a run or a rollout, each after the run of its parent. */
export function branchesBelow(id: string, all: readonly BranchRun[]): BranchRun[] {
  const found = new Set(all.filter(({ of }) => of === id || runOf(of) === id));
  const runs = new Set([...found].map(({ run_id }) => run_id));
  // The loop also visits the ids that it adds to the set.
  for (const run of runs)
    for (const one of all) {
      if (runOf(one.of) !== run) continue;
      found.add(one);
      runs.add(one.run_id);
    }
  return [...found];
}
