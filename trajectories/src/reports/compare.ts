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
/** Greatest share of instances, and greatest difference of shares of rollouts, that may lack verdicts at a conclusion `better` or `worse`. */
const MISSING = 0.05;

export type Comparison = ReturnType<typeof compare>;

/** Compares `b` with `a`: a won instance is one that `b` resolves more often. */
export function compare(a: Side, b: Side, options: ScalingOptions) {
  const [first, second] = [ratesOf(a.facts), ratesOf(b.facts)];
  const pairs = [...first].flatMap(([id, rate]): Pair[] => {
    const other = second.get(id);
    return other ? [{ instance_id: id, a: rate, b: other }] : [];
  });
  // One quotient of integers: equal rates have a difference of exactly 0.
  const differences = pairs.map(
    (pair) =>
      (pair.b.resolved * pair.a.verdicts - pair.a.resolved * pair.b.verdicts) /
      (pair.a.verdicts * pair.b.verdicts),
  );
  const won = pairs.filter((_, at) => (differences[at] ?? 0) > 0);
  const lost = pairs.filter((_, at) => (differences[at] ?? 0) < 0);
  const difference = pairs.length === 0 ? null : interval(differences, options);
  const test = testOf(pairs);
  const onlyA = [...first.keys()].filter((id) => !second.has(id));
  const onlyB = [...second.keys()].filter((id) => !first.has(id));
  const side = ({ name, facts }: Side, own: 'a' | 'b') => ({
    name,
    /** Number of verdicts on the common instances. */
    rollouts: pairs.reduce((sum, pair) => sum + pair[own].verdicts, 0),
    /** Number of rollouts without a verdict, on all instances of the side. */
    unjudged: unjudgedIn(facts),
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
    ...conclusionOf(difference, test, pairs.length, missingReasons([a, b], [onlyA, onlyB])),
    won,
    lost,
    /** Instances with a verdict on one side only. */
    only_a: onlyA,
    only_b: onlyB,
  };
}

const shareOf = ({ resolved, verdicts }: Rate): number => resolved / verdicts;

const unjudgedIn = (facts: readonly LineFact[]): number =>
  facts.filter((fact) => successOf(fact) === null).length;

/** Returns why the missing verdicts may bias the common instances: rollouts often fail on instances of a certain kind. */
function missingReasons(sides: readonly [Side, Side], only: readonly [string[], string[]]): string[] {
  const [a, b] = sides;
  const instances = new Set([...a.facts, ...b.facts].map(({ group }) => group)).size;
  const [withoutB, withoutA] = [only[0].length, only[1].length];
  if (withoutA + withoutB > MISSING * instances)
    return [
      ...[withoutA, withoutB].flatMap((count, at) =>
        count === 0 ? [] : [`${count} of ${instances} instances have no verdict in ${'AB'.charAt(at)}`],
      ),
    ];
  const [shareA = 0, shareB = 0] = sides.map(({ facts }) => unjudgedIn(facts) / Math.max(1, facts.length));
  if (Math.abs(shareA - shareB) <= MISSING) return [];
  return [`${percent(shareA)} of the rollouts of A and ${percent(shareB)} of B have no verdict`];
}

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
 * McNemar's exact test. Instances with unequal numbers of verdicts are excluded: even if both sides are equally good, wins and losses are not
 * equally likely there. Returns null if no instance can be tested.
 */
function testOf(pairs: readonly Pair[]) {
  const tested = pairs.filter(({ a, b }) => a.verdicts === b.verdicts);
  if (tested.length === 0) return null;
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

type Conclusion = { conclusion: 'better' | 'worse' | 'unclear' | 'noise' | null; reason: string | null };

/**
 * `unclear`: interval and test disagree, no instance can be tested, or verdicts are missing; `reason` is the cause. `noise`: neither shows a
 * difference. null: the sides have no instance in common.
 */
function conclusionOf(
  difference: Interval | null,
  test: ReturnType<typeof testOf>,
  pairs: number,
  missing: readonly string[],
): Conclusion {
  if (difference === null) return { conclusion: null, reason: null };
  if (test === null) return { conclusion: 'unclear', reason: UNTESTED };
  // Bounds below 1e-9 are rounding errors.
  const excludesZero = difference.low > 1e-9 || difference.high < -1e-9;
  if (excludesZero !== test.p < LEVEL) {
    const dropped = pairs - test.instances;
    const unequal =
      dropped === 0 ? '' : `; the test excludes ${dropped} instances with unequal numbers of verdicts`;
    return { conclusion: 'unclear', reason: `${DISAGREE}${unequal}` };
  }
  if (!excludesZero) return { conclusion: 'noise', reason: null };
  if (missing.length > 0) return { conclusion: 'unclear', reason: missing.join(', and ') };
  return { conclusion: difference.value > 0 ? 'better' : 'worse', reason: null };
}

const UNTESTED = 'no instance has equally many verdicts on both sides: use the same --group-size';
const DISAGREE = 'only one of interval and test excludes chance at 95 %; run more instances';

const CONCLUSIONS = {
  better: 'B is better: interval and test exclude chance at 95 %',
  worse: 'B is worse: interval and test exclude chance at 95 %',
  unclear: 'unclear',
  noise: 'noise: chance explains the difference',
} as const;

function conclusionText({ conclusion, reason }: Conclusion): string {
  if (conclusion === null) return 'no instance has verdicts on both sides';
  return [CONCLUSIONS[conclusion], ...(reason === null ? [] : [reason])].join(': ');
}

/** Returns the tables of a comparison for a terminal or Markdown. */
export function comparisonTables(of: Comparison): Table[] {
  const { a, b, difference, test, won, lost } = of;
  const tables: Table[] = [
    {
      title: 'Compared',
      columns: ['', 'output', 'rollouts with a verdict', 'without a verdict', 'pass@1 (95 %)'],
      rows: [a, b].map(({ name, rollouts, unjudged, pass_at_1: pass }, at) => [
        ...['AB'.charAt(at), name, String(rollouts), String(unjudged), withInterval(pass)],
      ]),
    },
    {
      title: `Difference over ${of.instances} instances`,
      columns: ['B − A (95 %)', 'won by B', 'lost by B', 'equal', nameOf(test?.name), 'conclusion'],
      rows: [
        [
          withInterval(difference),
          ...[won.length, lost.length, of.instances - won.length - lost.length].map(String),
          test === null ? 'none' : `p = ${test.p.toPrecision(3)}, ${test.instances} instances`,
          conclusionText(of),
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

const nameOf = (test: string | undefined): string =>
  test === 'mcnemar_exact' ? 'McNemar, exact' : 'sign test, exact';
const rateText = ({ resolved, verdicts }: Rate): string =>
  `${resolved}/${verdicts} (${percent(resolved / verdicts)})`;
