import type { Result } from './result.ts';

/**
 * Returns whether a rollout is a success: resolved, with a reward above 0; null: not judged or no verdict. Forged verdicts and masked
 * rollouts are not successes. Reports, counters, filters and exports use this rule.
 */
export function successOf({
  outcome,
  resolved,
  reward,
}: Pick<Result, 'outcome' | 'resolved' | 'reward'>): boolean | null {
  if (outcome !== 'judged' || resolved === null) return null;
  return resolved && reward !== null && reward > 0;
}
