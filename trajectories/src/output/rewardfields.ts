/** Recomputes the rewards of output lines from the facts in the lines. */
import { decideReward, type RewardOverrides } from '@swefarm/grading';
import { FAILURES, type Result, type RewardFacts } from '@swefarm/shared';

/** Returns the reward table's decision on these facts as fields of a line. Add them to the result of {@link withoutReward}. */
export function rewardFields(
  facts: RewardFacts,
  overrides: RewardOverrides,
  attempts: number,
): Pick<Result, 'outcome' | 'resolved' | 'reward' | 'reward_components' | 'reward_row' | 'failure'> {
  const { outcome, resolved, reward, row, failure, reward_components } = decideReward(facts, overrides);
  return {
    outcome,
    resolved,
    reward,
    ...(reward_components ? { reward_components } : {}),
    reward_row: row,
    failure: failure && { stage: FAILURES[failure.class].stage, ...failure, attempts },
  };
}

/** Removes the field of a reward that {@link rewardFields} does not always replace. */
export function withoutReward<L extends Pick<Result, 'reward_components'>>(
  line: L,
): Omit<L, 'reward_components'> {
  const { reward_components: _parts, ...rest } = line;
  return rest;
}
