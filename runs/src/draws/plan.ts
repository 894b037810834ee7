/**
 * Plans the draws of a run with `until`. The plan is a pure function of the seed, the pass rates and the number of the draw, and is stored
 * with the run, so that a resumed run has the same draws.
 */
import {
  type Curriculum,
  type Draw,
  type Instance,
  mostGroups,
  type Passes,
  Stratum,
  shuffledBy,
  type Until,
  uniformOf,
} from '@swefarm/shared';

/** Minimum number of rollouts for a known rate, and the number at which older policy versions are no longer counted. */
const LEAST_ROLLOUTS = 4;
const ENOUGH_ROLLOUTS = 8;

type Candidate = Pick<Instance, 'instance_id' | 'image'>;
export type Plan = { draws: Draw[]; strata: Until['strata'] };

/** Returns the pass rate of an instance over its newest policy versions; null: too few rollouts. */
export function passRate(passes: Passes = []): number | null {
  let [rollouts, passed] = [0, 0];
  for (const [, count, successes] of passes.toReversed()) {
    if (rollouts >= ENOUGH_ROLLOUTS) break;
    rollouts += count;
    passed += successes;
  }
  return rollouts < LEAST_ROLLOUTS ? null : passed / rollouts;
}

/** Plans draws without replacement, at most as many as the run may have groups. @param passes counts by instance id */
export function planDraws(
  { until, run_id }: { until: Until; run_id: string },
  instances: readonly Candidate[],
  passes: ReadonlyMap<string, Passes>,
): Plan {
  const seed = String(until.seed ?? run_id);
  const pools = poolsOf(until.curriculum, instances, passes);
  const strata = Object.fromEntries(
    [...pools].map(([name, members]) => [
      name,
      { instances: members.length, rate: meanRate(members, passes) },
    ]),
  );
  const orders = new Map(
    [...pools].map(([name, members]) => [
      name,
      shuffledBy(members, ({ instance_id: id }) => `${seed}/${id}`),
    ]),
  );
  const draws: Draw[] = [];
  const most = mostGroups({ until }, instances.length);
  while (draws.length < most) {
    const chances = chancesOf(until.curriculum, orders);
    const stratum = pick(chances, uniformOf(`${seed}/${draws.length}`));
    const order = stratum && orders.get(stratum);
    const next = order?.pop();
    if (!order || !next) break;
    const chance = (chances.get(stratum) ?? 0) / (order.length + 1);
    draws.push({ instance_id: next.instance_id, image: next.image, sequence: draws.length, stratum, chance });
  }
  return { draws, strata };
}

function poolsOf(
  curriculum: Curriculum | null,
  instances: readonly Candidate[],
  passes: ReadonlyMap<string, Passes>,
): Map<Stratum, Candidate[]> {
  return Map.groupBy(instances, ({ instance_id: id }): Stratum => {
    if (curriculum === null) return 'all';
    const rate = passRate(passes.get(id));
    if (rate === null) return 'unknown';
    const [low, high] = curriculum.band;
    return rate < low ? 'hard' : rate > high ? 'easy' : 'band';
  });
}

function meanRate(members: readonly Candidate[], passes: ReadonlyMap<string, Passes>): number | null {
  const rates = members.flatMap(({ instance_id: id }) => passRate(passes.get(id)) ?? []);
  return rates.length === 0 ? null : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
}

/** Returns the probability of each stratum that has instances left. The band and unknown instances replace each other. */
function chancesOf(
  curriculum: Curriculum | null,
  orders: ReadonlyMap<Stratum, readonly Candidate[]>,
): Map<Stratum, number> {
  const { probe = 0, recheck = 0, explore = 0 } = curriculum ?? {};
  const has = (name: Stratum): boolean => (orders.get(name)?.length ?? 0) > 0;
  const main = Math.max(0, 1 - probe - recheck);
  const band = has('unknown') ? Math.max(0, main - explore) : main;
  const weights: Record<Stratum, number> = {
    all: 1,
    band,
    unknown: has('band') ? main - band : main,
    hard: probe,
    easy: recheck,
  };
  const left = Stratum.options.filter((name) => has(name) && weights[name] > 0);
  const sum = left.reduce((total, name) => total + weights[name], 0);
  return new Map(left.map((name) => [name, weights[name] / sum]));
}

function pick(chances: ReadonlyMap<Stratum, number>, at: number): Stratum | null {
  let [sum, last]: [number, Stratum | null] = [0, null];
  for (const [name, chance] of chances) {
    sum += chance;
    last = name;
    if (at < sum) return name;
  }
  return last;
}
