/** Rewards lines of an output again, from their facts alone. */
import { decideReward, type RewardOverrides } from '@swefarm/grading';
import { FAILURES, type Result, type RewardFacts } from '@swefarm/shared';

/** The decision of the reward table on facts, as fields of a line. */
export function rewardFields(
  facts: RewardFacts,
  overrides: RewardOverrides,
  attempts: number,
): Pick<Result, 'outcome' | 'resolved' | 'reward' | 'reward_row' | 'failure'> {
  const { outcome, resolved, reward, row, failure } = decideReward(facts, overrides);
  return {
    outcome,
    resolved,
    reward,
    reward_row: row,
    failure: failure && { stage: FAILURES[failure.class].stage, ...failure, attempts },
  };
}
