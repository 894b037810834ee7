/** Durations of simulated rollouts, drawn from a long-tailed distribution; the same rollout always gets the same duration. */
import { createHash } from 'node:crypto';
import { parseRolloutId } from '@swefarm/shared';

/** Log-normal, as real rollouts are: most take minutes, a few take ten times as long, and a limit ends the rest. */
export const DURATIONS = { median_seconds: 300, sigma: 0.8, longest_seconds: 3600 } as const;

/** Two numbers in (0, 1) for this index of a group; they do not depend on the run. */
function lots(rolloutId: string): [number, number] {
  const { instanceId, index } = parseRolloutId(rolloutId);
  const digest = createHash('sha256').update(`${instanceId} ${index}`).digest();
  const lot = (at: number): number => (digest.readUInt32BE(at) + 0.5) / 2 ** 32;
  return [lot(0), lot(4)];
}

export function secondsOf(rolloutId: string): number {
  const [first, second] = lots(rolloutId);
  // Box-Muller: two uniform draws give one normal draw.
  const bell = Math.sqrt(-2 * Math.log(first)) * Math.cos(2 * Math.PI * second);
  const { median_seconds, sigma, longest_seconds } = DURATIONS;
  return Math.min(longest_seconds, median_seconds * Math.exp(sigma * bell));
}

/** A number in (0, 1) that selects a share of all rollouts. */
export const shareOf = (rolloutId: string): number => lots(rolloutId)[0];
