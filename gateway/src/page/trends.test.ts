import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Trend, type TrendResult } from './trends.ts';

const result = (at: number, version: string | null, more: Partial<TrendResult> = {}): TrendResult => ({
  ...{ outcome: 'judged', resolved: true, reward: 1, turns: 10, tokens: 100 },
  ...{ version, finished_at: at, ...more },
});
const trendOf = (results: readonly TrendResult[]): Trend => {
  const trend = new Trend();
  for (const one of results) trend.add(one);
  return trend;
};

test('rates and means are per version, and exclude failed and cancelled rollouts', () => {
  const { versions, all } = trendOf([
    result(0, 'w1'),
    result(1, 'w1', { resolved: false, reward: 0, turns: 20, tokens: 300 }),
    result(2, 'w2', { outcome: 'failed', resolved: null, reward: null }),
    result(3, 'w2', { outcome: 'cancelled', resolved: null, reward: null }),
    result(4, 'w2'),
  ]).points();
  expect(versions).toMatchObject([
    { version: 'w1', resolve_rate: 0.5, reward_mean: 0.5, turns_mean: 15, tokens_mean: 200, failure_rate: 0 },
    { version: 'w2', rollouts: 3, judged: 1, resolve_rate: 1, failure_rate: 0.5 },
  ]);
  expect(all).toMatchObject({ rollouts: 5, judged: 3, from: 0, to: 4 });
});

test('no results are one empty point and no series', () => {
  expect(new Trend().points()).toMatchObject({
    versions: [],
    times: [],
    all: { rollouts: 0, resolve_rate: null },
  });
});

test('10,000 versions become a bounded number of ordered points with every result once', () => {
  const results = Array.from({ length: 10_000 }, (_, at) => result(at * 3_000_000, `v${at}`));
  const { versions, times, all } = trendOf(results).points();
  for (const points of [versions, times]) {
    expect(points.length).toBeLessThanOrEqual(240);
    expect(points.length).toBeGreaterThanOrEqual(25);
    expect(points.reduce((sum, { rollouts }) => sum + rollouts, 0)).toBe(10_000);
    expect(points.map(({ from }) => from)).toEqual(points.map(({ from }) => from).toSorted((a, b) => a - b));
  }
  const merged = new Trend();
  merged.merge(trendOf(results));
  expect(merged.points().versions).toEqual(versions);
  expect([versions[0]?.version, versions.at(-1)?.until]).toEqual(['v0', 'v9999']);
  expect(all.rollouts).toBe(10_000);
});

test('a point over time stands for several results', () => {
  const results = Array.from({ length: 600 }, (_, at) =>
    result(at * 60_000, 'w1', { resolved: at % 2 === 0 }),
  );
  const { times } = trendOf(results).points();
  expect(times.length).toBeLessThanOrEqual(30);
  for (const { rollouts, resolve_rate } of times) {
    expect(rollouts).toBeGreaterThanOrEqual(10);
    expect(resolve_rate).toBeCloseTo(0.5, 0.5);
  }
});

test('a late result counts with its version, also after versions were merged', () => {
  const trend = trendOf(Array.from({ length: 1_000 }, (_, at) => result(at, `v${at}`)));
  const before = trend.points().versions[0]?.rollouts ?? 0;
  trend.add(result(5_000, 'v0'));
  expect(trend.points().versions[0]?.rollouts).toBe(before + 1);
});

test('merged trends count what one trend of all results counts', () => {
  const results = fc.array(
    fc.record({
      outcome: fc.constantFrom('judged' as const, 'failed' as const, 'cancelled' as const),
      resolved: fc.boolean(),
      reward: fc.constantFrom(0, 1, null),
      turns: fc.nat(50),
      tokens: fc.nat(1_000),
      version: fc.constantFrom('a', 'b', null),
      finished_at: fc.nat(10_000_000),
    }),
  );
  fc.assert(
    fc.property(results, results, (one, two) => {
      const merged = trendOf(one);
      merged.merge(trendOf(two));
      const [found, whole] = [merged.points(), trendOf([...one, ...two]).points()];
      expect(found.all).toEqual(whole.all);
      expect(found.times).toEqual(whole.times);
      const byName = (points: typeof found.versions) =>
        new Map(points.map((point) => [point.version, point]));
      expect(byName(found.versions)).toEqual(byName(whole.versions));
    }),
  );
});
