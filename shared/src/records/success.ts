import type { Result } from './result.ts';

/**
 * Returns whether a rollout is a success, for reports, counters, filters and exports: resolved, with a reward above 0. Forged verdicts
 * and masked rollouts are no successes. Returns null without a verdict.
 */
export function successOf({
  outcome,
  resolved,
  reward,
}: Pick<Result, 'outcome' | 'resolved' | 'reward'>): boolean | null {
  if (outcome !== 'judged' || resolved === null) return null;
  return resolved && reward !== null && reward > 0;
}
