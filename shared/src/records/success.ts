/** What counts as a success: the one rule for reports, counters, filters and exports. */
import type { Result } from './result.ts';

/**
 * Returns whether a rollout solved its task: the harness resolves it and the reward table rewards it. A forged verdict has reward 0, and a
 * rollout that trainers mask has none: neither is a success. Returns null where the rollout has no verdict.
 */
export function successOf({
  outcome,
  resolved,
  reward,
}: Pick<Result, 'outcome' | 'resolved' | 'reward'>): boolean | null {
  if (outcome !== 'judged' || resolved === null) return null;
  return resolved && reward !== null && reward > 0;
}
