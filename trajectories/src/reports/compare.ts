/** Compares two sets of rollouts over the instances that both have, with pure functions. */
import { successOf } from '@swefarm/shared';
import { type Interval, interval, type ScalingOptions } from '../scaling/statistics.ts';
import type { LineFact } from './facts.ts';
import { percent, type Table, withInterval } from './figures.ts';

/** Verdicts of one instance. */
type Rate = { resolved: number; verdicts: number };
/** An instance that both sides have, with the verdicts of the first (`a`) and the second side (`b`). */
type Pair = { instance_id: string; a: Rate; b: Rate };
type Side = { name: string; facts: readonly LineFact[] };

/** Significance level. The intervals contain 95 % of the resamples. */
const LEVEL = 0.05;

export type Comparison = ReturnType<typeof compare>;

/** Compares `b` with `a`: a won instance is one that `b` resolves more often. */
export function compare(a: Side, b: Side, options: ScalingOptions) {
  const [first, second] = [ratesOf(a.facts), ratesOf(b.facts)];
  const pairs = [...first].flatMap(([id, rate]): Pair[] => {
    const other = second.get(id);
    return other ? [{ instance_id: id, a: rate, b: other }] : [];
  });
  const differences = pairs.map((pair) => shareOf(pair.b) - shareOf(pair.a));
  const won = pairs.filter((_, at) => (differences[at] ?? 0) > 0);
  const lost = pairs.filter((_, at) => (differences[at] ?? 0) < 0);
  const difference = pairs.length === 0 ? null : interval(differences, options);
  const test = testOf(pairs);
  const side = ({ name }: Side, own: 'a' | 'b') => ({
    name,
    rollouts: pairs.reduce((sum, pair) => sum + pair[own].verdicts, 0),
    pass_at_1:
      pairs.length === 0
        ? null
        : interval(
            pairs.map((pair) => shareOf(pair[own])),
            options,
          ),
  });
  return {
    a: side(a, 'a'),
    b: side(b, 'b'),
    instances: pairs.length,
    /** Mean over instances of the rate of `b` minus the rate of `a`, with a bootstrap interval over instances. */
    difference,
    test,
    conclusion: conclusionOf(difference, test.p),
    won,
    lost,
    /** Instances with a verdict on one side only. */
    only_a: [...first.keys()].filter((id) => !second.has(id)),
    only_b: [...second.keys()].filter((id) => !first.has(id)),
  };
}

const shareOf = ({ resolved, verdicts }: Rate): number => resolved / verdicts;

/** Returns the verdicts by instance, in the order of the ids. Rollouts without a verdict are not counted. */
function ratesOf(facts: readonly LineFact[]): Map<string, Rate> {
  const judged = facts.filter((fact) => successOf(fact) !== null);
  const groups = [...Map.groupBy(judged, ({ group }) => group)].map(([id, own]): [string, Rate] => [
    id,
    { resolved: own.filter((fact) => successOf(fact) === true).length, verdicts: own.length },
  ]);
  return new Map(groups.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Tests whether won and lost instances are equally likely, by the exact sign test. With one rollout on each side of an instance the test is
 * McNemar's exact test. An instance with more verdicts on one side is left out, because its wins and losses differ without any effect.
 */
function testOf(pairs: readonly Pair[]) {
  const tested = pairs.filter(({ a, b }) => a.verdicts === b.verdicts);
  const won = tested.filter(({ a, b }) => b.resolved > a.resolved).length;
  const lost = tested.filter(({ a, b }) => b.resolved < a.resolved).length;
  const single = tested.every(({ a }) => a.verdicts === 1);
  return {
    name: single ? 'mcnemar_exact' : 'sign_exact',
    instances: tested.length,
    won,
    lost,
    p: signTest(won, lost),
  };
}

/** Returns the two-sided p-value of a binomial test with probability 1/2: 2 P(X ≤ min(won, lost)), at most 1. */
export function signTest(won: number, lost: number): number {
  const n = won + lost;
  let logTerm = -n * Math.LN2;
  let below = 0;
  for (let times = 0; times <= Math.min(won, lost); times++) {
    below += Math.exp(logTerm);
    logTerm += Math.log((n - times) / (times + 1));
  }
  return Math.min(1, 2 * below);
}

/** `unclear`: interval and test disagree. `noise`: neither shows a difference. null: the sides have no instance in common. */
function conclusionOf(
  difference: Interval | null,
  p: number,
): 'better' | 'worse' | 'unclear' | 'noise' | null {
  if (difference === null) return null;
  const excludesZero = difference.low > 0 || difference.high < 0;
  if (excludesZero !== p < LEVEL) return 'unclear';
  if (!excludesZero) return 'noise';
  return difference.value > 0 ? 'better' : 'worse';
}

const CONCLUSIONS = {
  better: 'B is better: interval and test exclude chance at 95 %',
  worse: 'B is worse: interval and test exclude chance at 95 %',
  unclear: 'unclear: only one of interval and test excludes chance at 95 %; run more instances',
  noise: 'noise: chance explains the difference',
} as const;

/** Returns the tables of a comparison for a terminal or Markdown. */
export function comparisonTables(of: Comparison): Table[] {
  const { a, b, difference, test, conclusion, won, lost } = of;
  const tables: Table[] = [
    {
      title: 'Compared',
      columns: ['', 'output', 'rollouts with a verdict', 'pass@1 (95 %)'],
      rows: [a, b].map(({ name, rollouts, pass_at_1: pass }, at) => [
        ...['AB'.charAt(at), name, String(rollouts), withInterval(pass)],
      ]),
    },
    {
      title: `Difference over ${of.instances} instances`,
      columns: ['B − A (95 %)', 'won by B', 'lost by B', 'equal', nameOf(test.name), 'conclusion'],
      rows: [
        [
          withInterval(difference),
          ...[won.length, lost.length, of.instances - won.length - lost.length].map(String),
          `p = ${test.p.toPrecision(3)}, ${test.instances} instances`,
          conclusion === null ? 'no instance has verdicts on both sides' : CONCLUSIONS[conclusion],
        ],
      ],
    },
    ...[
      { title: 'Won by B', pairs: won },
      { title: 'Lost by B', pairs: lost },
    ].map(({ title, pairs }) => ({
      title,
      columns: ['instance', 'A', 'B'],
      rows: pairs.map(({ instance_id: id, ...rates }) => [id, rateText(rates.a), rateText(rates.b)]),
    })),
    {
      title: 'Left out: verdicts on one side only',
      columns: ['instance', 'side'],
      rows: [...of.only_a.map((id) => [id, 'A']), ...of.only_b.map((id) => [id, 'B'])],
    },
  ];
  return tables.filter(({ rows }) => rows.length > 0);
}

const nameOf = (test: string): string => (test === 'mcnemar_exact' ? 'McNemar, exact' : 'sign test, exact');
const rateText = ({ resolved, verdicts }: Rate): string =>
  `${resolved}/${verdicts} (${percent(resolved / verdicts)})`;
