import type { Result } from './result.ts';

/**
 * Returns whether a rollout is a success: resolved, and rewarded for that; null: not judged or no verdict. Forged verdicts and masked
 * rollouts are not successes. The weights of other parts of the reward change no success. Reports, counters, filters and exports use
 * this rule.
 */
export function successOf({
  outcome,
  resolved,
  reward,
  reward_parts: parts,
}: Pick<Result, 'outcome' | 'resolved' | 'reward'> & {
  reward_parts?: Result['reward_parts'] | undefined;
}): boolean | null {
  if (outcome !== 'judged' || resolved === null) return null;
  return resolved && reward !== null && (parts?.resolved ?? reward) > 0;
}
