/**
 * Estimates the mean pass rate of a dataset from the drawn groups. Within a stratum the draws are a simple random sample, so each group
 * counts by the inverse of its probability: instances of the stratum over groups of the stratum (Cochran, Sampling Techniques, 5.4 and 10.4).
 */
import { type Draw, type Farm, type GroupEnd, type RunRecord, Stratum, type Until } from '@swefarm/shared';
import { z } from 'zod';

/** Half-width of a 95 % confidence interval, in standard deviations. */
const WIDTH = 1.96;
/** Standard deviation of the known rate of a stratum that has no draws: earlier policy versions may have produced it. */
const KNOWN_DEVIATION = 0.1;

/** Estimated mean pass rate of a dataset, with the bounds of its 95 % interval. */
export const PassEstimate = z.object({
  pass_rate: z.number(),
  low: z.number(),
  high: z.number(),
  groups: z.number().int().meta({ description: 'groups that the estimate uses' }),
  covered: z
    .number()
    .meta({ description: 'share of the dataset with draws or a known rate; the estimate is for this share' }),
});
export type PassEstimate = z.infer<typeof PassEstimate>;

/** Reads the draws and ended groups of a run, and estimates. Returns null for a run without `until`, or without a usable rollout. */
export async function passEstimate(
  farm: Pick<Farm, 'runs' | 'results' | 'groupEnds'>,
  { run_id, until }: Pick<RunRecord, 'run_id' | 'until'>,
): Promise<PassEstimate | null> {
  if (until === null) return null;
  const [draws, ends, { drawn }] = await Promise.all([
    farm.runs.draws(run_id),
    farm.groupEnds.list(run_id),
    farm.results.counts(run_id),
  ]);
  return estimatePassRate(until, draws.slice(0, drawn), ends);
}

type Part = { weight: number; mean: number; variance: number; groups: number };
type Observed = { rate: number; rollouts: number };

/**
 * Returns null without a group that has usable rollouts.
 *
 * @param draws the opened draws, in order
 */
export function estimatePassRate(
  until: Pick<Until, 'strata' | 'groups'>,
  draws: readonly Pick<Draw, 'instance_id' | 'stratum'>[],
  ends: readonly Pick<GroupEnd, 'instance_id' | 'usable' | 'pass_rate' | 'selected'>[],
): PassEstimate | null {
  const selected = ends.filter((end) => end.selected === true).length;
  // The last draw of a run that has enough groups is always a selected one, so it is no random draw.
  const random = selected >= until.groups ? draws.slice(0, -1) : draws;
  const byInstance = new Map(ends.map((end) => [end.instance_id, end]));
  const observed = Map.groupBy(random, ({ stratum }) => stratum);
  const parts = Stratum.options.flatMap((name): Part[] => {
    const size = until.strata[name];
    if (!size || size.instances === 0) return [];
    const groups = (observed.get(name) ?? []).flatMap(({ instance_id }): Observed[] => {
      const end = byInstance.get(instance_id);
      return end && end.pass_rate !== null ? [{ rate: end.pass_rate, rollouts: end.usable }] : [];
    });
    if (groups.length > 0)
      return [{ weight: size.instances, groups: groups.length, ...meanOf(groups, size.instances) }];
    return size.rate === null
      ? []
      : [{ weight: size.instances, groups: 0, mean: size.rate, variance: KNOWN_DEVIATION ** 2 }];
  });
  const groups = sum(parts.map((part) => part.groups));
  if (groups === 0) return null;
  const covered = sum(parts.map((part) => part.weight));
  const all = sum(Object.values(until.strata).map((size) => size?.instances ?? 0));
  const mean = sum(parts.map((part) => (part.weight / covered) * part.mean));
  const deviation = Math.sqrt(sum(parts.map((part) => (part.weight / covered) ** 2 * part.variance)));
  return {
    pass_rate: mean,
    low: Math.max(0, mean - WIDTH * deviation),
    high: Math.min(1, mean + WIDTH * deviation),
    groups,
    covered: covered / all,
  };
}

/** Returns the mean of a stratum and the variance of the mean in a sample of two stages: instances, and rollouts of each instance. */
function meanOf(groups: readonly Observed[], instances: number): { mean: number; variance: number } {
  const count = groups.length;
  const mean = sum(groups.map(({ rate }) => rate)) / count;
  // A group with rate 0 and one with rate 1 are added, because a few equal rates do not show that all rates are equal.
  const between = [...groups.map(({ rate }) => rate), 0, 1];
  const center = sum(between) / between.length;
  const spread = sum(between.map((rate) => (rate - center) ** 2)) / (between.length - 1);
  const within =
    sum(groups.map(({ rate, rollouts }) => (rate * (1 - rate)) / Math.max(1, rollouts - 1))) / count;
  const share = Math.min(1, count / instances);
  return { mean, variance: ((1 - share) * spread + share * within) / count };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
