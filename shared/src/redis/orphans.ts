/** Cancels rollouts whose caller disconnected; maintenance and gateways use it. */
import type { Farm } from './farm.ts';

/** Default time in ms within which a caller may return after its gateway died. */
export const ORPHAN_GRACE_MS = 20_000;

/** Cancels the rollouts of calls whose grace is over, and returns their ids. */
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
