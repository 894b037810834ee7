/** What runs on for callers that are gone is cancelled: a duty of the keeper, and of every gateway. */
import type { Farm } from './farm.ts';

/** For calls whose gateway died, when nobody says otherwise. */
export const ORPHAN_GRACE_MS = 20_000;

/** Cancels the rollouts of calls that nobody took up again in time; answers which. May be cut off and run twice at once. */
export async function cancelOrphans(
  farm: Pick<Farm, 'calls' | 'cancel'>,
  graceMs = ORPHAN_GRACE_MS,
): Promise<string[]> {
  const lapsed = await farm.calls.lapsed(graceMs);
  const rollouts = lapsed.map(({ rollout_id }) => rollout_id);
  if (rollouts.length === 0) return [];
  await farm.cancel.cancelRollouts(rollouts, 'orphan');
  await farm.calls.forget(lapsed.map(({ call_id }) => call_id));
  return rollouts;
}
