/** Computes the mean rewards behind the turns of a rollout from its branches: the step-level credit of the turns. */
import type { Result } from '@swefarm/shared';
import { type Countable, meansOf, tally } from './tally.ts';

/** `turn`: the last shared turn, from 1. `rewarded`: number of branches with a reward. `reward_mean`: mean of their rewards. */
export type BranchReward = { turn: number; branches: number; rewarded: number; reward_mean: number | null };

type Branch = Countable & Pick<Result, 'rollout_id' | 'branch_of'>;

/** Collects branches by the rollout that they continue. If a branch is added twice, its last result counts. */
export class BranchRewards {
  readonly #branches = new Map<string, Map<string, Branch>>();

  note({ rollout_id, branch_of, outcome, resolved, reward, turns }: Branch): void {
    if (!branch_of) return;
    const found = this.#branches.get(branch_of.rollout_id) ?? new Map<string, Branch>();
    this.#branches.set(branch_of.rollout_id, found);
    found.set(rollout_id, { rollout_id, branch_of, outcome, resolved, reward, turns });
  }

  /** Returns the rewards behind each turn that has branches, in the order of the turns. */
  of(rolloutId: string): BranchReward[] {
    const branches = this.#branches.get(rolloutId)?.values() ?? [];
    return [...Map.groupBy(branches, ({ branch_of }) => branch_of?.turn ?? 0)]
      .sort(([one], [other]) => one - other)
      .map(([turn, own]) => {
        const sums = tally(own);
        const { rewarded } = sums;
        return { turn, branches: own.length, rewarded, reward_mean: meansOf(sums).reward_mean };
      });
  }
}
