/** Cancels rollouts whose callers are gone: a duty of maintenance, and of every gateway. */
import type { Farm } from './farm.ts';

/** Grace of a call whose gateway died, unless the call has its own. */
export const ORPHAN_GRACE_MS = 20_000;

/** Cancels the rollouts of calls that nobody took up again in time, and returns them. Safe to interrupt and to run twice at once. */
export async function cancelOrphans(
  farm: Pick<Farm, 'calls' | 'cancel'>,
  graceMs = ORPHAN_GRACE_MS,
): Promise<string[]> {
  const expired = await farm.calls.expired(graceMs);
  const rollouts = expired.map(({ rollout_id }) => rollout_id);
  if (rollouts.length === 0) return [];
  await farm.cancel.cancelRollouts(rollouts, 'orphan');
  await farm.calls.forget(expired.map(({ call_id }) => call_id));
  return rollouts;
}
