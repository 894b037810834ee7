/** Rewards lines of an output again, from their facts alone. */
import { decideReward, type RewardOverrides } from '@swefarm/grading';
import { FAILURES, type Result, type RewardFacts } from '@swefarm/shared';

/** What the table says about facts, as the fields of a line. */
export function rewarded(
  facts: RewardFacts,
  overrides: RewardOverrides,
  attempts: number,
): Pick<Result, 'outcome' | 'resolved' | 'reward' | 'reward_row' | 'failure'> {
  const decision = decideReward(facts, overrides);
  const judged = decision.outcome === 'judged';
  const failure = decision.failure && {
    stage: FAILURES[decision.failure.class].stage,
    class: decision.failure.class,
    message: decision.failure.message,
    attempts,
  };
  const resolved = judged ? (facts.resolved ?? (decision.reward === null ? null : false)) : null;
  return { outcome: decision.outcome, resolved, reward: decision.reward, reward_row: decision.row, failure };
}
