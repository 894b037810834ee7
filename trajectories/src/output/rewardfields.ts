/** Computes the rewards of output lines again, from their facts alone. */
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

/** A line without the fields that a new reward may lack. */
export function withoutReward<L extends Pick<Result, 'reward_components'>>(
  line: L,
): Omit<L, 'reward_components'> {
  const { reward_components: _parts, ...rest } = line;
  return rest;
}
