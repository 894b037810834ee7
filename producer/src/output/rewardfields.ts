/** Computes the rewards of output lines again, from their facts alone. */
import { decideReward, type RewardOverrides } from '@swefarm/grading';
import { FAILURES, type Result, type RewardFacts } from '@swefarm/shared';

/** The reward table's decision on these facts, as fields of a line. */
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
