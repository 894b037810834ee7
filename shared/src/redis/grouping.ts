/** Rollouts by their run: keys are per run, questions are often about rollouts of several. */
import { parseRolloutId } from '../records/ids.ts';

export function byRun(rolloutIds: readonly string[]): Map<string, string[]> {
  return Map.groupBy(rolloutIds, (id) => parseRolloutId(id).runId);
}
