/** Computes counts and rates over rollouts, with pure functions that all reports share. */
import { type Countable, countNames, mean, meansOf, tally, withVerdict } from './tally.ts';

export type RolloutFact = Countable & {
  /** Key of the rollout's group: the instance, or the prompt that a caller repeats. */
  group: string;
  repo: string;
  patch_applied: boolean;
  evaluation_error: boolean;
  /** Why the rollout failed; null: the rollout did not fail. */
  failure: string | null;
  /** Why the farm or a user cancelled the rollout; null: the rollout was not cancelled. */
  cancelled: string | null;
};

export type Profile = ReturnType<typeof profileOf>;

/** Computes the profile. `groupSize` is the number of judged rollouts in a complete group; default: the size of the largest group. */
export function profileOf(facts: readonly RolloutFact[], groupSize?: number) {
  const groups = [...Map.groupBy(facts, (fact) => fact.group).values()].map(tally);
  const size = groupSize ?? Math.max(0, ...groups.map((group) => group.total));
  const uncancelled = facts.filter((fact) => fact.cancelled === null);
  const most = Math.max(0, ...groups.map(withVerdict));
  const average = mean(
    groups.filter((group) => withVerdict(group) > 0).map((group) => group.resolved / withVerdict(group)),
  );
  return {
    ...countOf(facts),
    /** Unbiased pass@k by k, over the groups with at least k verdicts. */
    pass_at: Object.fromEntries(
      Array.from({ length: most }, (_, index) => index + 1).flatMap((k): [string, number][] => {
        const enough = groups.filter((group) => withVerdict(group) >= k);
        const value = mean(enough.map((group) => passAt(withVerdict(group), group.resolved, k)));
        return value === null ? [] : [[String(k), value]];
      }),
    ),
    /** Mean accuracy of the groups with a verdict; k is the largest number of verdicts in a group. */
    pass_at_1_avg_of_k: average === null ? null : { k: most, value: average },
    /** This rate and `evaluation_error_rate` are over the rollouts that were not cancelled. */
    patch_applied_rate: share(uncancelled, (fact) => fact.patch_applied),
    evaluation_error_rate: share(uncancelled, (fact) => fact.evaluation_error),
    mean_turns_cancelled: mean(facts.flatMap((fact) => (fact.cancelled === null ? [] : [fact.turns]))),
    failures: countSorted(facts, (fact) => fact.failure),
    cancelled: countSorted(facts, (fact) => fact.cancelled),
    by_repository: Object.fromEntries(
      [...Map.groupBy(facts, (fact) => fact.repo)]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([repo, own]) => [repo, countOf(own)]),
    ),
    groups: { total: groups.length, complete: groups.filter((group) => group.judged >= size).length, size },
  };
}

/**
 * Returns the probability that k of n samples, c of them correct, include a correct one: 1 - C(n-c, k) / C(n, k), as a product that does
 * not overflow (Chen et al. 2021, "Evaluating Large Language Models Trained on Code", section 2.1).
 */
export function passAt(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let none = 1;
  for (let i = n - c + 1; i <= n; i++) none *= 1 - k / i;
  return 1 - none;
}

/** Computes counts and rates. A rate with a zero denominator is null. */
export function countOf(facts: readonly RolloutFact[]) {
  const sums = tally(facts);
  const { total, judged, resolved, resolved_officially, scored } = sums;
  const { resolve_rate: accuracy, reward_mean: mean_reward, turns_mean: mean_turns } = meansOf(sums);
  return { total, judged, resolved, resolved_officially, scored, accuracy, mean_reward, mean_turns };
}

const share = (facts: readonly RolloutFact[], has: (fact: RolloutFact) => boolean): number | null =>
  facts.length === 0 ? null : facts.filter(has).length / facts.length;

/** Counts the rollouts by name, in alphabetical order of the names. Rollouts without a name are not counted. */
const countSorted = (facts: readonly RolloutFact[], nameOf: (fact: RolloutFact) => string | null) =>
  countNames(facts.flatMap((fact) => nameOf(fact) ?? []).toSorted());
