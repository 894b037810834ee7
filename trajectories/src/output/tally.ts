/** Counts results for tables, pages and reports. */
import type { Result } from '@swefarm/shared';
// The browser page imports this module, and the index of shared does not load in a browser.
import { successOf } from '@swefarm/shared/success';

export type Countable = Pick<Result, 'outcome' | 'resolved' | 'reward' | 'reward_parts' | 'turns'>;

export type Tally = ReturnType<typeof emptyTally>;

export const emptyTally = () => ({
  total: 0,
  judged: 0,
  failed: 0,
  cancelled: 0,
  /** Number of successes: resolved and rewarded. */
  resolved: 0,
  /** Number resolved by the verdict of the harness, including forged and unrewarded ones. */
  resolved_officially: 0,
  /** Number judged by a reward alone, because the dataset gives no verdict. */
  scored: 0,
  rewarded: 0,
  reward_sum: 0,
  turns_sum: 0,
  cancelled_turns_sum: 0,
});

export function addResult(sums: Tally, result: Countable): void {
  const { outcome, resolved, reward, turns } = result;
  sums.total += 1;
  sums[outcome] += 1;
  if (outcome === 'cancelled') sums.cancelled_turns_sum += turns;
  if (outcome !== 'judged') return;
  sums.turns_sum += turns;
  if (resolved === true) sums.resolved_officially += 1;
  if (successOf(result) === true) sums.resolved += 1;
  if (reward === null) return;
  sums.rewarded += 1;
  sums.reward_sum += reward;
  if (resolved === null) sums.scored += 1;
}

export function tally(results: Iterable<Countable>): Tally {
  const sums = emptyTally();
  for (const result of results) addResult(sums, result);
  return sums;
}

/** Computes means from sums; the mean of no results is null. */
export const meansOf = (
  sums: Pick<Tally, 'judged' | 'resolved' | 'scored' | 'rewarded' | 'reward_sum' | 'turns_sum'>,
): { resolve_rate: number | null; reward_mean: number | null; turns_mean: number | null } => ({
  resolve_rate: ratio(sums.resolved, withVerdict(sums)),
  reward_mean: ratio(sums.reward_sum, sums.rewarded),
  turns_mean: ratio(sums.turns_sum, sums.judged),
});

/** Returns the number of judged rollouts except scored ones: the denominator of the resolve rate and of pass@k. */
export const withVerdict = ({ judged, scored }: Pick<Tally, 'judged' | 'scored'>): number => judged - scored;

/** Returns `sum / count`; null when `count` is zero. */
export const ratio = (sum: number, count: number): number | null => (count === 0 ? null : sum / count);

export const mean = (values: readonly number[]): number | null =>
  ratio(
    values.reduce((sum, value) => sum + value, 0),
    values.length,
  );

/** Counts each name, in the order of first occurrence. */
export function countNames(names: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
