/** Recomputes the rewards of output lines from the facts in the lines. */
import { decideReward } from '@swefarm/grading';
import { FAILURES, type Result, type RewardFacts, type RunRecord, UsageError } from '@swefarm/shared';

/** Reward settings of a run; runs of earlier versions have no weights. */
export type RewardRule = Partial<Pick<RunRecord['reward'], 'overrides' | 'weights'>>;

/** Fields that not every reward has. */
const OPTIONAL = ['reward_components', 'reward_parts'] as const;
type RewardField = (typeof OPTIONAL)[number];

/**
 * Returns the reward table's decision on these facts as fields of a line. Add them by {@link withReward}.
 * @throws UsageError for facts of an older version that lack what the weights need
 */
export function rewardFields(
  facts: RewardFacts,
  { overrides = {}, weights = null }: RewardRule,
  attempts: number,
): Pick<Result, RewardField | 'outcome' | 'resolved' | 'reward' | 'reward_row' | 'failure'> {
  const { outcome, resolved, reward, row, failure, missing, ...parts } = decideReward(
    facts,
    overrides,
    weights,
  );
  if (missing) {
    const names = [...new Set(missing)].join(', ');
    throw new UsageError(`its facts lack ${names}, which --reward needs: an older version wrote them`);
  }
  return {
    outcome,
    resolved,
    reward,
    ...parts,
    reward_row: row,
    failure: failure && { stage: FAILURES[failure.class].stage, ...failure, attempts },
  };
}

/** Returns the line with a reward of {@link rewardFields}; its fields keep their order. */
export function withReward<L extends Pick<Result, RewardField>>(
  line: L,
  reward: ReturnType<typeof rewardFields>,
) {
  const rewarded = { ...line, ...reward };
  for (const field of OPTIONAL) if (!(field in reward)) delete rewarded[field];
  return rewarded;
}
