/**
 * Computes the parts of a report except the profile, with pure functions: intervals, best@k, costs, distributions, and the results by
 * family, repository, difficulty and set.
 */
import { spreadOf } from '@swefarm/datasets';
import { type InstalledAgent, successOf } from '@swefarm/shared';
import { countOf } from '../output/profile.ts';
import { countNames, mean } from '../output/tally.ts';
import {
  interval,
  type Sample,
  type ScalingAtK,
  type ScalingOptions,
  scalingAt,
} from '../scaling/statistics.ts';
import type { LineFact } from './facts.ts';

export type Bin = { from: number; to: number; count: number };
export type Cut = ReturnType<typeof cutOf>;
export type Costs = NonNullable<ReturnType<typeof costsOf>>;
export type Analysis = ReturnType<typeof analyse>;

export function analyse(facts: readonly LineFact[], ks: readonly number[], options: ScalingOptions) {
  const groups = samplesOf(facts);
  const sampled = [...groups.values()];
  const shares = sampled.map((own) => own.filter(({ resolved }) => resolved).length / own.length);
  const descending = ks.toSorted((a, b) => b - a);
  const cuts = (nameOf: (fact: LineFact) => string | null): Record<string, Cut> =>
    Object.fromEntries(
      [...Map.groupBy(facts, nameOf)]
        .flatMap(([name, own]): [string, Cut][] =>
          name === null ? [] : [[name, cutOf(own, descending, options)]],
        )
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );
  const judged = facts.filter(({ outcome }) => outcome === 'judged');
  const familyOf = familiesOf(facts);
  // Ids of instances that have scores instead of verdicts.
  const scored = new Set(judged.flatMap(({ group, resolved }) => (resolved === null ? [group] : [])));
  const spent = facts.flatMap(({ cost }) => cost ?? []);
  return {
    /** Mean over instances of the share of resolved rollouts, with a bootstrap interval. */
    accuracy_interval: shares.length === 0 ? null : interval(shares, options),
    scaling: ks.flatMap((k) => scalingAt(sampled, k, options) ?? []),
    /** Results by family; empty when no rollout has a known family. */
    families: cuts(familyOf),
    repositories: cuts(({ repo }) => repo),
    /** Results by the share of resolved rollouts of an instance, without instances that only a score grades. */
    difficulty: cuts(({ group }) => (scored.has(group) ? null : bandOf(groups.get(group)))),
    /** Results by set (`--set`); empty without sets. */
    sets: cuts(({ tag }) => tag),
    /** By family the parts of the reward without weights, and what they or the numbers of a grader add to the reward. */
    parts: numbersOf(facts, familyOf, ({ reward_parts: parts = {} }) => parts),
    components: numbersOf(facts, familyOf, ({ components }) => components),
    /** Results by agent that came as a program, with the sums of what was recorded of it; empty without such agents. */
    agents: agentsOf(facts),
    costs: costsOf(facts),
    distributions: {
      /** Number of rollouts of each repository, judged or not, in descending order. */
      repositories: countsOf(facts),
      /** Spreads over judged rollouts. The cost is over all rollouts with a known cost. */
      spreads: {
        turns: spreadOf(judged.map(({ turns }) => turns)),
        tokens: spreadOf(judged.map(({ tokens }) => tokens)),
        cost: spreadOf(spent),
      },
      exit_statuses: countNames(judged.map(({ exit_status }) => exit_status ?? 'none').toSorted()),
      turns: binsOf(judged.map(({ turns }) => turns)),
      tokens: binsOf(judged.map(({ tokens }) => tokens)),
      cost: binsOf(spent),
    },
  };
}

const countsOf = (facts: readonly LineFact[]): Record<string, number> =>
  Object.fromEntries(
    Object.entries(countNames(facts.map(({ repo }) => repo))).toSorted(
      ([a, m], [b, n]) => n - m || (a < b ? -1 : 1),
    ),
  );

function samplesOf(facts: readonly LineFact[]): Map<string, Sample[]> {
  const judged = facts.filter(({ outcome, resolved }) => outcome === 'judged' && resolved !== null);
  return new Map(
    [...Map.groupBy(judged, ({ group }) => group)].map(([group, own]) => [
      group,
      own.map((fact) => ({ resolved: successOf(fact) === true, score: fact.score })),
    ]),
  );
}

/** Returns a function from rollout to family. Results that no worker made have no family and get the family of the instance. */
function familiesOf(facts: readonly LineFact[]): (fact: LineFact) => string | null {
  const known = new Map(facts.flatMap(({ group, family }) => (family === null ? [] : [[group, family]])));
  return ({ group }) => (known.size === 0 ? null : (known.get(group) ?? 'unknown'));
}

/** Returns the difficulty band of an instance. The numbers sort the bands from hard to easy. */
function bandOf(samples: readonly Sample[] | undefined): string | null {
  if (samples === undefined) return null;
  const share = samples.filter(({ resolved }) => resolved).length / samples.length;
  if (share === 0) return '1 never resolved';
  if (share < 0.25) return '2 under 25 %';
  if (share < 0.75) return '3 from 25 to 75 %';
  return share < 1 ? '4 over 75 %' : '5 always resolved';
}

function cutOf(facts: readonly LineFact[], ks: readonly number[], options: ScalingOptions) {
  const samples = [...samplesOf(facts).values()];
  return {
    ...countOf(facts),
    instances: new Set(facts.map(({ group }) => group)).size,
    /** pass@k and best@k at the largest k for which the cut has an instance with k verdicts; null when there is none. */
    largest: ks.reduce<ScalingAtK | null>((found, k) => found ?? scalingAt(samples, k, options), null),
  };
}

function costsOf(facts: readonly LineFact[]) {
  const priced = facts.filter((fact): fact is LineFact & { cost: number } => fact.cost !== null);
  if (priced.length === 0) return null;
  const total = priced.reduce((sum, { cost }) => sum + cost, 0);
  const successes = priced.filter((fact) => successOf(fact) === true).length;
  return {
    /** Total cost in US dollars of the rollouts with a known cost. */
    total,
    rollouts: priced.length,
    per_rollout: total / priced.length,
    /** US dollars per success; null without a success. */
    per_success: successes === 0 ? null : total / successes,
  };
}

/** Maximum number of parts or components of a family in a report. Graders choose the names, so only the most frequent ones are shown. */
const MOST_NAMES = 50;

type NumbersIn = (fact: LineFact) => Readonly<Record<string, number>>;

/** Returns the named numbers by family and name, without families that have none. `familyOf` returns null for an unknown family. */
function numbersOf(
  facts: readonly LineFact[],
  familyOf: (fact: LineFact) => string | null,
  numbersIn: NumbersIn,
) {
  const rated = facts.filter((fact) => Object.keys(numbersIn(fact)).length > 0);
  const families = Map.groupBy(rated, (fact) => familyOf(fact) ?? 'unknown');
  const inOrder = [...families].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(inOrder.map(([family, own]) => [family, numbersOfFamily(own, numbersIn)]));
}

function numbersOfFamily(facts: readonly LineFact[], numbersIn: NumbersIn) {
  const values = Map.groupBy(
    facts.flatMap((fact) => Object.entries(numbersIn(fact))),
    ([name]) => name,
  );
  const frequent = [...values]
    .map(([name, own]) => [name, own.map(([, value]) => value)] as const)
    .toSorted(([a, m], [b, n]) => n.length - m.length || (a < b ? -1 : 1))
    .slice(0, MOST_NAMES);
  return Object.fromEntries(
    frequent.flatMap(([name, own]) => {
      const spread = spreadOf(own);
      return spread === null ? [] : [[name, { rollouts: own.length, mean: mean(own) ?? 0, spread }]];
    }),
  );
}

type Recorded = Pick<InstalledAgent, 'lines' | 'requests' | 'whole' | 'repeated' | 'repaired' | 'refused'>;

function agentsOf(facts: readonly LineFact[]) {
  const ran = Map.groupBy(facts, ({ agent }) => (agent ? `${agent.name} ${agent.version}` : null));
  return Object.fromEntries(
    [...ran]
      .toSorted(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1))
      .flatMap(([name, own]) => {
        if (name === null) return [];
        const agents = own.flatMap(({ agent }) => agent ?? []);
        const sum = (count: (agent: InstalledAgent) => number): number =>
          agents.reduce((total, agent) => total + count(agent), 0);
        const sumOf = (key: keyof Recorded): number => sum((agent) => agent[key]);
        const recorded = {
          lines: sumOf('lines'),
          turns: own.reduce((total, { turns }) => total + turns, 0),
          masked_turns: sum(({ masked }) => Object.values(masked).reduce((total, turns) => total + turns, 0)),
          requests: sumOf('requests'),
          whole: sumOf('whole'),
          repeated: sumOf('repeated'),
          repaired: sumOf('repaired'),
          refused: sumOf('refused'),
        };
        return [[name, { ...countOf(own), recorded }]];
      }),
  );
}

const BINS = 12;

/** Returns bins of equal width, which is 1, 2 or 5 times a power of ten. A value on a border belongs to the upper bin. */
export function binsOf(values: readonly number[]): Bin[] {
  if (values.length === 0) return [];
  const least = values.reduce((a, b) => Math.min(a, b));
  const most = values.reduce((a, b) => Math.max(a, b));
  const width = niceWidth((most - least) / BINS, values.every(Number.isInteger));
  const first = Math.floor(least / width);
  const bins = Array.from({ length: Math.floor(most / width) - first + 1 }, (_, at) => ({
    from: (first + at) * width,
    to: (first + at + 1) * width,
    count: 0,
  }));
  for (const value of values) {
    const bin = bins[Math.floor(value / width) - first];
    if (bin) bin.count += 1;
  }
  return bins;
}

function niceWidth(raw: number, whole: boolean): number {
  if (raw <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const width = ([1, 2, 5, 10].find((step) => step * power >= raw) ?? 10) * power;
  return whole ? Math.max(1, width) : width;
}
