import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bestAt, interval, type Sample, scalingAt } from './statistics.ts';

const OPTIONS = { resamples: 1000, seed: 1 };
const of = (...pairs: [resolved: boolean, score: number | null][]): Sample[] =>
  pairs.map(([resolved, score]) => ({ resolved, score }));

test('best@k by hand: four samples, the best score is wrong, the second one right', () => {
  // 3 of the 6 pairs contain the first sample (wrong), 2 others contain the second (right), and the last pair is wrong.
  const samples = of([false, 0.9], [true, 0.8], [false, 0.2], [false, 0.1]);
  expect(bestAt(samples, 1)).toBeCloseTo(1 / 4);
  expect(bestAt(samples, 2)).toBeCloseTo(2 / 6);
  // 3 of the 4 triples contain the first sample (wrong); in the other one, the second sample wins.
  expect(bestAt(samples, 3)).toBeCloseTo(1 / 4);
  expect(bestAt(samples, 4)).toBeCloseTo(0);
  expect(bestAt(samples, 5)).toBeNull();
});

test('equal scores are equally likely; without a score best@k is unknown', () => {
  expect(bestAt(of([true, 0.5], [false, 0.5], [false, 0.1]), 3)).toBeCloseTo(1 / 2);
  expect(bestAt(of([true, 0.5], [false, null]), 1)).toBeNull();
});

test('best@k equals the count over all subsets, and never exceeds pass@k', () => {
  const sample = fc.record({ resolved: fc.boolean(), score: fc.constantFrom(0, 0.25, 0.5, 1) });
  fc.assert(
    fc.property(
      fc.array(sample, { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 1, max: 7 }),
      (samples, k) => {
        if (k > samples.length) return;
        const subsets = chosen(samples, k);
        const shares = subsets.map((subset) => {
          const most = Math.max(...subset.map(({ score }) => score));
          const top = subset.filter(({ score }) => score === most);
          return top.filter(({ resolved }) => resolved).length / top.length;
        });
        const counted = shares.reduce((sum, share) => sum + share, 0) / shares.length;
        expect(bestAt(samples, k)).toBeCloseTo(counted, 10);
        const at = scalingAt([samples], k, { resamples: 1, seed: 0 });
        expect((at?.pass.value ?? 0) - counted).toBeGreaterThan(-1e-9);
        expect(at?.gap?.value).toBeCloseTo((at?.pass.value ?? 0) - counted, 10);
      },
    ),
    { seed: 19, numRuns: 200 },
  );
});

test('figures of two instances by hand; the instance without a score is separate', () => {
  const right = of([true, 1], [false, 0]);
  const wrong = of([true, 0], [false, 1]);
  const unscored = of([true, 1], [true, null]);
  const at = scalingAt([right, wrong, unscored], 2, OPTIONS);
  expect(at).toMatchObject({ k: 2, instances: 3, unscored: 1, pass: { value: 1, low: 1, high: 1 } });
  expect(at?.best?.value).toBe(1 / 2);
  expect(at?.gap?.value).toBe(1 / 2);
  expect(scalingAt([right], 3, OPTIONS)).toBeNull();
  expect(scalingAt([of([true, null])], 1, OPTIONS)).toMatchObject({ best: null, gap: null });
});

test('an interval contains its value, is reproducible, and narrows with more instances', () => {
  const few = interval([0, 1, 1, 0], OPTIONS);
  const many = interval(
    Array.from({ length: 400 }, (_, at) => at % 2),
    OPTIONS,
  );
  expect(interval([0, 1, 1, 0], OPTIONS)).toEqual(few);
  expect(few.low).toBeLessThan(few.value);
  expect(few.high).toBeGreaterThan(few.value);
  expect(many.high - many.low).toBeLessThan((few.high - few.low) / 4);
  // The mean of 400 values is 0.5 with a standard error of 0.025, so the interval is near 0.5 ± 0.049.
  expect(many.low).toBeGreaterThan(0.43);
  expect(many.low).toBeLessThan(0.47);
});

function chosen<T>(items: readonly T[], k: number): T[][] {
  if (k === 0) return [[]];
  return items.flatMap((item, at) => chosen(items.slice(at + 1), k - 1).map((rest) => [item, ...rest]));
}
