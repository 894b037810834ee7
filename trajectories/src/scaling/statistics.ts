/** Figures of test-time scaling over instances: pass@k, best@k, and how certain they are. Pure and exact; only the bootstrap draws, by a seed. */
import { passAt } from '../output/profile.ts';
import { mean } from '../output/tally.ts';

/** One rollout with a verdict. */
export type Sample = { resolved: boolean; score: number | null };

/**
 * Probability that the sample with the highest score among k drawn of these is resolved. Samples with equal scores are chosen alike. With n
 * samples, `before` of them better than a group of `size` equal ones, the best of k lies in that group with probability
 * (C(n-before, k) - C(n-before-size, k)) / C(n, k). Null when there are fewer than k, or one has no score.
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

/** C(n - excluded, k) / C(n, k): that none of the excluded is drawn. */
const noneOf = (n: number, excluded: number, k: number): number => 1 - passAt(n, excluded, k);

export type Interval = { value: number; low: number; high: number };

export type ScalingOptions = {
  /** Resamples of the bootstrap. */
  resamples: number;
  seed: number;
};

export type ScalingAtK = {
  k: number;
  /** Instances with at least k verdicts. */
  instances: number;
  pass: Interval;
  /** Over the instances whose samples all have a score. Null: no such instance. */
  best: Interval | null;
  /** pass@k minus best@k over the same instances: what a perfect verifier would add. */
  gap: Interval | null;
  /** Instances that are not in `best` because a sample lacks its score. */
  unscored: number;
};

/** Null where no instance has k verdicts. */
export function scalingAt(
  groups: readonly (readonly Sample[])[],
  k: number,
  options: ScalingOptions,
): ScalingAtK | null {
  const enough = groups.filter((group) => group.length >= k);
  if (enough.length === 0) return null;
  const pairs = enough.map((group) => ({
    pass: passAt(group.length, group.filter(({ resolved }) => resolved).length, k),
    best: bestAt(group, k),
  }));
  const ranked = pairs.filter((pair): pair is { pass: number; best: number } => pair.best !== null);
  const scores = ranked.length > 0 && groups.some((group) => group.some(({ score }) => score !== null));
  return {
    k,
    instances: enough.length,
    pass: interval(
      pairs.map(({ pass }) => pass),
      options,
    ),
    best: scores
      ? interval(
          ranked.map(({ best }) => best),
          options,
        )
      : null,
    gap: scores
      ? interval(
          // A rounding error is no gap.
          ranked.map(({ pass, best }) => (Math.abs(pass - best) < 1e-9 ? 0 : pass - best)),
          options,
        )
      : null,
    unscored: enough.length - ranked.length,
  };
}

/** The mean, and the 2.5th and 97.5th percentile of the means of resamples with replacement (Efron's percentile bootstrap). */
export function interval(values: readonly number[], { resamples, seed }: ScalingOptions): Interval {
  const value = mean(values) ?? 0;
  const random = generator(seed);
  const means = Array.from({ length: resamples }, () => {
    let sum = 0;
    for (let drawn = 0; drawn < values.length; drawn++)
      sum += values[Math.floor(random() * values.length)] ?? 0;
    return sum / values.length;
  }).toSorted((a, b) => a - b);
  const at = (share: number): number =>
    means[Math.min(means.length - 1, Math.floor(share * means.length))] ?? value;
  return { value, low: at(0.025), high: at(0.975) };
}

/** mulberry32: small, and the same on every machine. From 0 to below 1. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
