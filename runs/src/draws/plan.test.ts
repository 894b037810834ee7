import { type Draw, type Passes, Until } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { estimatePassRate } from './estimate.ts';
import { passRate, planDraws } from './plan.ts';

const share = fc.double({ min: 0, max: 1, noNaN: true });
const counts = fc
  .tuple(fc.integer({ min: 0, max: 12 }), share)
  .map(([n, s]): [string, number, number] => ['v', n, Math.round(n * s)]);
const world = fc.record({
  rates: fc.array(fc.option(fc.array(counts, { maxLength: 4 })), { minLength: 1, maxLength: 60 }),
  seed: fc.integer(),
  curriculum: fc.option(
    fc.record({
      band: fc.constant<[number, number]>([0.2, 0.8]),
      probe: share,
      recheck: share,
      explore: share,
    }),
  ),
});

function planOf(
  { rates, seed, curriculum }: { rates: (Passes | null)[]; seed: number; curriculum: object | null },
  max = 1000,
) {
  const instances = rates.map((_, at) => ({ instance_id: `i${at}`, image: 'x' }));
  const passes = new Map(rates.flatMap((one, at) => (one ? [[`i${at}`, one] as const] : [])));
  const until = Until.parse({ groups: 1, max, seed, curriculum });
  return { instances, passes, until, ...planDraws({ until, run_id: 'r' }, instances, passes) };
}

test('a plan is a function of seed, rates and number of the draw, in any order of the rows', () => {
  fc.assert(
    fc.property(world, fc.integer({ min: 1, max: 20 }), (given, max) => {
      const { draws, instances, passes, until } = planOf(given);
      expect(planOf(given, max).draws).toEqual(draws.slice(0, max));
      expect(planDraws({ until, run_id: 'r' }, instances.toReversed(), passes).draws).toEqual(draws);
    }),
  );
});

test('no instance is drawn twice, and each draw has a possible chance', () => {
  fc.assert(
    fc.property(world, (given) => {
      const { draws, strata, instances } = planOf(given);
      expect(new Set(draws.map((draw) => draw.instance_id)).size).toBe(draws.length);
      expect(draws.every(({ chance }) => chance > 0 && chance <= 1 + 1e-9)).toBe(true);
      const sizes = Object.values(strata).map((size) => size?.instances ?? 0);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(instances.length);
    }),
  );
});

test('without recheck solved instances are retired; probes get their share', () => {
  const rates = Array.from({ length: 3000 }, (_, at): Passes => [['v', 8, [0, 4, 8][at % 3] ?? 0]]);
  const curriculum = { band: [0.2, 0.8], probe: 0.1, recheck: 0, explore: 0 };
  const { draws } = planOf({ rates, seed: 7, curriculum }, 900);
  const by = Map.groupBy(draws, ({ stratum }: Draw) => stratum);
  expect(by.has('easy')).toBe(false);
  expect(by.get('hard')?.length).toBeGreaterThan(60);
  expect(by.get('hard')?.length).toBeLessThan(120);
});

test('a rate is that of the newest versions with enough rollouts', () => {
  expect(
    passRate([
      ['a', 8, 8],
      ['b', 8, 2],
    ]),
  ).toBe(0.25);
  expect(
    passRate([
      ['a', 4, 4],
      ['b', 4, 0],
    ]),
  ).toBe(0.5);
  expect(passRate([['a', 3, 3]])).toBe(null);
  expect(passRate()).toBe(null);
});

test('groups count by the inverse of the probability of their stratum', () => {
  const strata = {
    band: { instances: 10, rate: 0.5 },
    hard: { instances: 80, rate: 0.1 },
    easy: { instances: 10, rate: 1 },
  };
  const draws = [...Array(10).keys()].map((at) => ({ instance_id: `b${at}`, stratum: 'band' as const }));
  const hard = [0, 1].map((at) => ({ instance_id: `h${at}`, stratum: 'hard' as const }));
  const end = (instance_id: string, pass_rate: number | null) => ({
    instance_id,
    usable: pass_rate === null ? 0 : 8,
    pass_rate,
    selected: false,
  });
  const ends = [...draws.map((draw) => end(draw.instance_id, 0.5)), end('h0', 0), end('h1', null)];
  const estimate = estimatePassRate({ strata, groups: 32 }, [...draws, ...hard], ends);
  expect(estimate).toMatchObject({ groups: 11, covered: 1 });
  expect(estimate?.pass_rate).toBeCloseTo(0.1 * 0.5 + 0.8 * 0 + 0.1 * 1);
  expect(estimate?.high).toBeGreaterThan(0.4);
  expect(estimatePassRate({ strata, groups: 32 }, draws, [])).toBe(null);
  const unknown = { band: strata.band, unknown: { instances: 90, rate: null } };
  expect(estimatePassRate({ strata: unknown, groups: 32 }, draws, ends)?.covered).toBeCloseTo(0.1);
});
