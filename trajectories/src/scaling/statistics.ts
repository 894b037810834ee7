/** Computes pass@k and best@k over instances with seeded bootstrap intervals, with pure functions. */
import { passAt } from '../output/profile.ts';
import { mean } from '../output/tally.ts';

export type Sample = { resolved: boolean; score: number | null };

/**
 * Returns the probability that the best-scored of k drawn samples is resolved; null for fewer than k samples or a missing score. Equal
 * scores are equally likely to win: if `before` samples are better than a group of `size` equal ones, the best is in the group with
 * probability (C(n-before, k) - C(n-before-size, k)) / C(n, k).
 */
export function bestAt(samples: readonly Sample[], k: number): number | null {
  if (samples.length < k || samples.some(({ score }) => score === null)) return null;
  const groups = [...Map.groupBy(samples, ({ score }) => score as number)].toSorted(([a], [b]) => b - a);
  let before = 0;
  let probability = 0;
  for (const [, group] of groups) {
    const share = group.filter(({ resolved }) => resolved).length / group.length;
    const reached = noneOf(samples.length, before, k);
    before += group.length;
    probability += (reached - noneOf(samples.length, before, k)) * share;
  }
  return probability;
}

/** Returns C(n - excluded, k) / C(n, k), the probability that none of the excluded samples is drawn. */
const noneOf = (n: number, excluded: number, k: number): number => 1 - passAt(n, excluded, k);

export type Interval = { value: number; low: number; high: number };

export type ScalingOptions = { resamples: number; seed: number };

export type ScalingAtK = NonNullable<ReturnType<typeof scalingAt>>;

/** Computes pass@k and best@k; null if no instance has k verdicts. */
export function scalingAt(groups: readonly (readonly Sample[])[], k: number, options: ScalingOptions) {
  const enough = groups.filter((group) => group.length >= k);
  if (enough.length === 0) return null;
  const pairs = enough.map((group) => ({
    pass: passAt(group.length, group.filter(({ resolved }) => resolved).length, k),
    best: bestAt(group, k),
  }));
  const ranked = pairs.filter((pair): pair is { pass: number; best: number } => pair.best !== null);
  const scores = ranked.length > 0 && groups.some((group) => group.some(({ score }) => score !== null));
  const passes = pairs.map(({ pass }) => pass);
  const bests = ranked.map(({ best }) => best);
  // Differences below 1e-9 are rounding errors.
  const gaps = ranked.map(({ pass, best }) => (Math.abs(pass - best) < 1e-9 ? 0 : pass - best));
  return {
    k,
    /** Number of instances with at least k verdicts. */
    instances: enough.length,
    pass: interval(passes, options),
    /** best@k over the instances whose samples all have a score; null if no instance has. */
    best: scores ? interval(bests, options) : null,
    /** pass@k minus best@k over the same instances, which is the possible gain from a perfect verifier. */
    gap: scores ? interval(gaps, options) : null,
    /** Number of instances that `best` omits because a sample lacks a score. */
    unscored: enough.length - ranked.length,
  };
}

/** Returns the mean, and the 2.5th and 97.5th percentiles of the means of resamples with replacement (Efron's percentile bootstrap). */
export function interval(values: readonly number[], { resamples, seed }: ScalingOptions): Interval {
  const value = mean(values) ?? 0;
  const random = generator(seed);
  const means = Array.from({ length: resamples }, () => {
    let sum = 0;
    for (let drawn = 0; drawn < values.length; drawn++)
      sum += values[Math.floor(random() * values.length)] ?? 0;
    return sum / values.length;
  }).toSorted((a, b) => a - b);
  // Equally many means are below and above, so the interval of the negated values is the negated interval.
  const cut = Math.floor(0.025 * means.length);
  return { value, low: means[cut] ?? value, high: means[means.length - 1 - cut] ?? value };
}

/** Returns the seeded random generator mulberry32, whose numbers are in [0, 1). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
