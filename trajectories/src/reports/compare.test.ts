import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aLine } from '../../test/result.ts';
import { interval } from '../scaling/statistics.ts';
import { compare, comparisonTables, signTest } from './compare.ts';
import { markdownOf } from './document.ts';
import { factOf } from './facts.ts';

const OPTIONS = { resamples: 2000, seed: 1 };

/** Returns a side from texts of verdicts by instance: `+` resolved, `-` not, `?` failed without a verdict. */
const side = (name: string, verdicts: Readonly<Record<string, string>>) => ({
  name,
  facts: Object.entries(verdicts).flatMap(([id, marks]) =>
    [...marks].map((mark, index) => {
      const failed = mark === '?';
      const resolved = failed ? null : mark === '+';
      const line = aLine({ instance_id: id, rollout_id: `${name}.${id}.${index}`, resolved });
      return factOf({
        ...line,
        outcome: failed ? 'failed' : 'judged',
        reward: failed ? null : Number(resolved),
      });
    }),
  ),
});

test('instances are won, lost, equal, or left out when one side has no verdict', () => {
  const a = side('a', { both: '+', won: '-', lost: '+', 'only-a': '+', failed: '+' });
  const b = side('b', { both: '+', won: '+', lost: '-', 'only-b': '-', failed: '?' });
  expect(compare(a, b, OPTIONS)).toMatchObject({
    a: { name: 'a', rollouts: 3, pass_at_1: { value: 2 / 3 } },
    b: { name: 'b', rollouts: 3, pass_at_1: { value: 2 / 3 } },
    instances: 3,
    difference: { value: 0 },
    test: { name: 'mcnemar_exact', instances: 3, won: 1, lost: 1, p: 1 },
    conclusion: 'noise',
    won: [{ instance_id: 'won', a: { resolved: 0, verdicts: 1 }, b: { resolved: 1, verdicts: 1 } }],
    lost: [{ instance_id: 'lost' }],
    only_a: ['failed', 'only-a'],
    only_b: ['only-b'],
  });
});

test('an instance with more verdicts on one side counts for the rates, not for the test', () => {
  const compared = compare(side('a', { i: '+', j: '+-' }), side('b', { i: '+--+', j: '++' }), OPTIONS);
  expect(compared.difference?.value).toBeCloseTo((-0.5 + 0.5) / 2);
  expect(compared.test).toEqual({ name: 'sign_exact', instances: 1, won: 1, lost: 0, p: 1 });
  expect(compared).toMatchObject({ won: [{ instance_id: 'j' }], lost: [{ instance_id: 'i' }] });
});

/** Returns verdicts of `count` instances by their position. */
const many = (count: number, marks: (at: number) => string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`i${at}`, marks(at)]));

test('a side whose rollouts often failed without a verdict is not better', () => {
  const a = side(
    'a',
    many(100, (at) => (at < 80 ? '+' : '-')),
  );
  const lost = side(
    'b',
    many(100, (at) => (at < 80 ? '?' : '+')),
  );
  const compared = compare(a, lost, OPTIONS);
  expect(compared).toMatchObject({
    a: { unjudged: 0 },
    b: { unjudged: 80 },
    conclusion: 'unclear',
    reason: '80 of 100 instances have no verdict in B',
  });
  expect(markdownOf('t', comparisonTables(compared))).toContain('unclear: 80 of 100 instances have no');
  const lossy = compare(
    side(
      'a',
      many(40, () => '--'),
    ),
    side(
      'b',
      many(40, () => '++??'),
    ),
    OPTIONS,
  );
  expect(lossy).toMatchObject({
    conclusion: 'unclear',
    reason: '0.0 % of the rollouts of A and 50.0 % of B have no verdict',
  });
  const few = side(
    'b',
    many(100, (at) => (at < 4 ? '?' : '+')),
  );
  const none = side(
    'a',
    many(100, () => '-'),
  );
  expect(compare(none, few, OPTIONS)).toMatchObject({ conclusion: 'better', reason: null });
});

test('the order of the sides changes the sign only', () => {
  const mirrored = { better: 'worse', worse: 'better', unclear: 'unclear', noise: 'noise' };
  for (let won = 4; won <= 10; won++)
    for (const lost of [0, 1, 2]) {
      const marks = (other: boolean) => (at: number) => (at < won ? !other : at < won + lost && other);
      const of = (name: string, other: boolean) =>
        side(
          name,
          many(30, (at) => (marks(other)(at) ? '+' : '-')),
        );
      const [forth, back] = [
        compare(of('a', true), of('b', false), { resamples: 1000, seed: 0 }),
        compare(of('b', false), of('a', true), { resamples: 1000, seed: 0 }),
      ];
      expect(back.difference?.low).toBeCloseTo(-(forth.difference?.high ?? Number.NaN), 12);
      expect(back.difference?.high).toBeCloseTo(-(forth.difference?.low ?? Number.NaN), 12);
      expect(back.conclusion).toBe(mirrored[forth.conclusion ?? 'noise']);
    }
});

test('a bound that differs from 0 by a rounding error does not exclude 0', () => {
  const marks = (first: boolean) => (at: number) =>
    at < 1 ? (first ? '---' : '+--') : at < 4 ? (first ? '+++' : '++-') : '---';
  for (let count = 4; count < 12; count++) {
    const of = (first: boolean) => side('s', many(count, marks(first)));
    const { difference, conclusion } = compare(of(true), of(false), { resamples: 1000, seed: 0 });
    if (Math.abs(difference?.high ?? 1) < 1e-9) expect(conclusion, `${count} instances`).toBe('noise');
  }
});

test('sides with different group sizes have no test, and the reason names the remedy', () => {
  const [a, b] = [many(20, () => '-'), many(20, () => '+++-')];
  const compared = compare(side('a', a), side('b', b), OPTIONS);
  expect(compared).toMatchObject({
    test: null,
    conclusion: 'unclear',
    reason: 'no instance has equally many verdicts on both sides: use the same --group-size',
  });
  expect(markdownOf('t', comparisonTables(compared))).toContain('unclear: no instance has equally many');
  const some = compare(side('a', { ...a, j: '-' }), side('b', { ...b, j: '+' }), OPTIONS);
  expect(some.conclusion).toBe('unclear');
  expect(some.reason).toContain('the test excludes 20 instances with unequal numbers of verdicts');
});

test('the sides have nothing in common: no difference, and no conclusion', () => {
  const compared = compare(side('a', { i: '+' }), side('b', { j: '+' }), OPTIONS);
  expect(compared).toMatchObject({ instances: 0, difference: null, conclusion: null, test: null });
});

// scipy.stats.binomtest(won, won + lost, 0.5) of SciPy; statsmodels' mcnemar(exact=True) has the same values.
test.each([
  [10, 2, 0.03857421875],
  [3, 3, 1],
  [6, 0, 0.03125],
  [5, 1, 0.21875],
  [40, 20, 0.01348929373119186],
  [1100, 1000, 0.03072070786424249],
])('the p-value of %i won and %i lost instances is that of SciPy', (won, lost, p) => {
  expect(signTest(won, lost)).toBeCloseTo(p, 10);
  expect(signTest(lost, won)).toBeCloseTo(p, 10);
});

test('the interval of a difference is that of SciPy, up to the chance of the resamples', () => {
  const repeated = (times: number, value: number): number[] => Array.from({ length: times }, () => value);
  const differences = [
    [12, 1],
    [4, -1],
    [24, 0],
    [8, 0.5],
    [2, -0.25],
  ].flatMap(([times = 0, value = 0]) => repeated(times, value));
  // scipy.stats.bootstrap((differences,), numpy.mean, method='percentile', n_resamples=100000)
  const { value, low, high } = interval(differences, { resamples: 20_000, seed: 5 });
  expect(value).toBeCloseTo(0.23, 10);
  expect(Math.abs(low - 0.075)).toBeLessThanOrEqual(0.01);
  expect(Math.abs(high - 0.38)).toBeLessThanOrEqual(0.01);
});

test('the p-value equals the share of all sequences of wins that are as uneven', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 12 }), (n, raw) => {
      const won = Math.min(raw, n);
      const least = Math.min(won, n - won);
      let uneven = 0;
      for (let sequence = 0; sequence < 2 ** n; sequence++) {
        const ones = [...sequence.toString(2)].filter((bit) => bit === '1').length;
        if (Math.min(ones, n - ones) <= least) uneven += 1;
      }
      expect(signTest(won, n - won)).toBeCloseTo(Math.min(1, uneven / 2 ** n), 10);
    }),
  );
});

test('two runs of one policy are rarely different, and a real gain is found', () => {
  let state = 7;
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const drawn = (name: string, rate: number) =>
    side(
      name,
      Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`i${at}`, random() < rate ? '+' : '-'])),
    );
  const conclusions = (gain: number, draws: number) =>
    Array.from(
      { length: draws },
      () => compare(drawn('a', 0.4), drawn('b', 0.4 + gain), { resamples: 100, seed: 3 }).conclusion,
    );
  const wrong = conclusions(0, 100).filter((one) => one === 'better' || one === 'worse').length;
  expect(wrong / 100).toBeLessThanOrEqual(0.05);
  expect(conclusions(0.4, 20).filter((one) => one === 'better').length).toBeGreaterThan(17);
});

test('the tables name instances with their counts, and empty tables are left out', () => {
  const shown = markdownOf(
    't',
    comparisonTables(compare(side('a', { i: '-+' }), side('b', { i: '++' }), OPTIONS)),
  );
  expect(shown).toContain('## Won by B');
  expect(shown).toContain('| i | 1/2 (50.0 %) | 2/2 (100.0 %) |');
  expect(shown).toContain('| sign test, exact |');
  expect(shown).not.toContain('## Lost by B');
  expect(shown).not.toContain('Left out');
});
