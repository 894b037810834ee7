/** The parts of a report beside the profile: intervals, best of k, cuts, costs, distributions. Pure. */
import { type Spread, spreadOf } from '@swefarm/datasets';
import { successOf } from '@swefarm/shared';
import { type Counted, profileOf } from '../output/profile.ts';
import { countNames } from '../output/tally.ts';
import {
  type Interval,
  interval,
  type Sample,
  type ScalingAtK,
  type ScalingOptions,
  scalingAt,
} from '../scaling/statistics.ts';
import { type Component, componentsOf } from './components.ts';
import type { LineFact } from './facts.ts';

export type Bin = { from: number; to: number; count: number };

export type Cut = Counted & {
  instances: number;
  /** pass@k and best@k at the largest k of the report for which the cut has an instance; null without any. */
  largest: ScalingAtK | null;
};

export type Costs = {
  /** US dollars, over the rollouts whose cost is known. */
  total: number;
  rollouts: number;
  per_rollout: number;
  /** Null without a success. */
  per_success: number | null;
};

export type Analysis = {
  /** Over instances: the mean of each one's own share of resolved rollouts. */
  accuracy_interval: Interval | null;
  scaling: ScalingAtK[];
  /** By family of dataset rows; empty when no rollout has its family. */
  families: Record<string, Cut>;
  repositories: Record<string, Cut>;
  /** By how often an instance is resolved here; without instances that only a score grades. */
  difficulty: Record<string, Cut>;
  /** By the set of a collection; empty without sets. */
  sets: Record<string, Cut>;
  /** By family and name, of the rewards that have named parts. */
  components: Record<string, Record<string, Component>>;
  costs: Costs | null;
  distributions: {
    /** Rollouts of each, judged or not, most first. */
    repositories: Record<string, number>;
    exit_statuses: Record<string, number>;
    /** Over judged rollouts; the cost over those whose cost is known. */
    spreads: { turns: Spread; tokens: Spread; cost: Spread };
    turns: Bin[];
    tokens: Bin[];
    cost: Bin[];
  };
};

export function analyse(
  facts: readonly LineFact[],
  ks: readonly number[],
  options: ScalingOptions,
): Analysis {
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
  // Instances with scores in place of verdicts.
  const scored = new Set(judged.flatMap(({ group, resolved }) => (resolved === null ? [group] : [])));
  const spent = facts.flatMap(({ cost }) => cost ?? []);
  return {
    accuracy_interval: shares.length === 0 ? null : interval(shares, options),
    scaling: ks.flatMap((k) => scalingAt(sampled, k, options) ?? []),
    families: cuts(familyOf),
    repositories: cuts(({ repo }) => repo),
    difficulty: cuts(({ group }) => (scored.has(group) ? null : bandOf(groups.get(group)))),
    sets: cuts(({ tag }) => tag),
    components: componentsOf(facts, familyOf),
    costs: costsOf(facts),
    distributions: {
      repositories: countsOf(facts),
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

/** The family of a rollout. A result that no worker made has none, and gets that of its siblings. */
function familiesOf(facts: readonly LineFact[]): (fact: LineFact) => string | null {
  const known = new Map(facts.flatMap(({ group, family }) => (family === null ? [] : [[group, family]])));
  return ({ group }) => (known.size === 0 ? null : (known.get(group) ?? 'unknown'));
}

/** The bands sort from hard to easy. */
function bandOf(samples: readonly Sample[] | undefined): string | null {
  if (samples === undefined) return null;
  const share = samples.filter(({ resolved }) => resolved).length / samples.length;
  if (share === 0) return '1 never resolved';
  if (share < 0.25) return '2 under 25 %';
  if (share < 0.75) return '3 from 25 to 75 %';
  return share < 1 ? '4 over 75 %' : '5 always resolved';
}

function cutOf(facts: readonly LineFact[], ks: readonly number[], options: ScalingOptions): Cut {
  const { total, judged, resolved, resolved_officially, scored, accuracy, mean_reward, mean_turns } =
    profileOf(facts);
  const samples = [...samplesOf(facts).values()];
  return {
    ...{ total, judged, resolved, resolved_officially, scored, accuracy, mean_reward, mean_turns },
    instances: new Set(facts.map(({ group }) => group)).size,
    largest: ks.reduce<ScalingAtK | null>((found, k) => found ?? scalingAt(samples, k, options), null),
  };
}

function costsOf(facts: readonly LineFact[]): Costs | null {
  const priced = facts.filter((fact): fact is LineFact & { cost: number } => fact.cost !== null);
  if (priced.length === 0) return null;
  const total = priced.reduce((sum, { cost }) => sum + cost, 0);
  const successes = priced.filter((fact) => successOf(fact) === true).length;
  return {
    total,
    rollouts: priced.length,
    per_rollout: total / priced.length,
    per_success: successes === 0 ? null : total / successes,
  };
}

const BINS = 12;

/** Bins of one width, which is 1, 2 or 5 times a power of ten; a value on a border belongs to the upper one. */
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
