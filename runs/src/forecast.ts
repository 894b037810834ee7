/** Expects how long the rollouts of a run take, from the history of their instances: for the order of its groups, and for its forecast. */
import {
  costOf,
  type Draw,
  type Farm,
  type Instance,
  type KnownHistory,
  type RolloutHistory,
  type RunForecast,
  type RunRecord,
  startedGroup,
  UsageError,
} from '@swefarm/shared';
import { createNormal, idealMakespan, makespan } from './schedule.ts';

/** Number of rollouts of its family that the history of an instance counts in addition, because few rollouts say little. */
const PRIOR_ROLLOUTS = 1;
const SEED = 1;
/** Number of simulated runs, and maximum number of simulated rollouts. */
const RUNS = 200;
const MOST_SIMULATED = 400_000;
const [LOW, HIGH] = [0.05, 0.95];
/** Number of waiting rollouts that a rollout may overtake: this many if it is expected to take twice as long, and never more. */
const LEAD = 512;

type Named = Pick<Instance, 'instance_id' | 'family'>;

/** Returns the history that an instance is expected to have; null: no rollout of the agent is known. */
export function expectedOf(known: KnownHistory, { instance_id, family }: Named): RolloutHistory | null {
  const prior = known.prior(family);
  const own = known.of.get(instance_id);
  if (!prior || !own) return prior;
  const share = own.count / (own.count + PRIOR_ROLLOUTS);
  const between = (key: keyof RolloutHistory): number => share * own[key] + (1 - share) * prior[key];
  return {
    ...own,
    logMean: between('logMean'),
    logVariance: between('logVariance'),
    seconds: between('seconds'),
    promptTokens: between('promptTokens'),
    completionTokens: between('completionTokens'),
  };
}

/** Returns the instances in the order of their expected durations, the longest first; unknown ones are in the middle. */
export function longestFirst<T extends Named>(instances: readonly T[], known: KnownHistory): T[] {
  const seconds = new Map(instances.map((one) => [one, expectedOf(known, one)?.seconds ?? 0]));
  return instances.toSorted((a, b) => (seconds.get(b) ?? 0) - (seconds.get(a) ?? 0));
}

/**
 * Returns the instances in the order in which `record.order` queues them.
 * @param known history of the instances; absent: the function reads it
 * @throws UnusableError of Redis
 */
export async function inOrder<T extends Named>(
  farm: Pick<Farm, 'history'>,
  record: Pick<RunRecord, 'agent' | 'order'>,
  instances: readonly T[],
  known?: KnownHistory,
): Promise<readonly T[]> {
  if (record.order === 'given' || instances.length < 2) return instances;
  return longestFirst(instances, known ?? (await farm.history.read(record.agent, instances)));
}

/**
 * Returns before how many waiting rollouts of an open run a new group is queued (negative: behind how many): more if it is expected to
 * take longer than others. The number is bounded, so that short rollouts run too while calls arrive. @throws UnusableError of Redis
 */
export async function leadOf(
  farm: Pick<Farm, 'history'>,
  record: Pick<RunRecord, 'agent' | 'order'>,
  instance: Named,
): Promise<number> {
  if (record.order === 'given') return 0;
  const known = await farm.history.read(record.agent, [instance]);
  const [own, prior] = [expectedOf(known, instance), known.prior(instance.family)];
  if (!own || !prior) return 0;
  const lead = Math.round(LEAD * Math.log2(own.seconds / prior.seconds));
  return Math.max(-LEAD, Math.min(LEAD, lead));
}

/**
 * Forecasts a run from the history of its instances and the live workers; undefined: the run draws its instances while it works. Assumes
 * that all slots of claiming workers are free for this run, and that the policy admits all rollouts.
 * @throws UnusableError of Redis
 */
export async function forecastRun(
  farm: Pick<Farm, 'registry'>,
  record: RunRecord,
  instances: readonly Named[],
  known: KnownHistory,
): Promise<RunForecast | undefined> {
  if (record.until !== null) return undefined;
  const workers = await farm.registry.list();
  const slots = workers.reduce((sum, { slots: own, paused }) => sum + (paused === null ? own : 0), 0);
  const ordered = record.order === 'longest' ? longestFirst(instances, known) : instances;
  const expected = ordered.flatMap((one) => expectedOf(known, one) ?? []);
  const size = startedGroup(record);
  const sum = (key: 'promptTokens' | 'completionTokens'): number =>
    Math.round(expected.reduce((all, one) => all + size * one[key], 0));
  const isKnown = expected.length > 0;
  const tokens = isKnown ? { prompt: sum('promptTokens'), completion: sum('completionTokens') } : null;
  const price = record.policy?.price;
  return {
    rollouts: instances.length * size,
    instances: instances.length,
    unknown: instances.filter(({ instance_id: id }) => !known.of.has(id)).length,
    slots,
    seconds: isKnown && slots > 0 ? simulate(expected, size, slots, longestOf(record)) : null,
    tokens,
    cost: tokens && price ? costOf(tokens, price) : null,
  };
}

/**
 * Returns the draws of a run with their positions in the queue. A group is queued behind the first groups that are expected to take longer,
 * even if it is drawn later. @param opened number of groups that are open from the start
 */
export function placedDraws(
  draws: readonly Draw[],
  opened: number,
  instances: ReadonlyMap<string, Named>,
  known: KnownHistory,
): Draw[] {
  const expected = draws.map(({ instance_id: id }) => {
    const instance = instances.get(id);
    return instance ? (expectedOf(known, instance)?.seconds ?? 0) : 0;
  });
  const first = expected.slice(0, opened);
  return draws.map((draw, at) => {
    const seconds = expected[at] ?? 0;
    const longer = first.filter((one, index) => one > seconds || (one === seconds && index < at));
    return { ...draw, sequence: longer.length };
  });
}

/** Throws UsageError for the plan of a run without a forecast. */
export function requireForecast(forecast: RunForecast | undefined): RunForecast {
  if (forecast) return forecast;
  throw new UsageError(
    '--plan: a run with --until-groups (until) draws its instances while it works, so it has no forecast',
  );
}

/**
 * Draws the durations of a run many times and schedules them, because a run lasts longer than its mean durations: the last rollouts are
 * those that took longer than expected. @param expected histories of the groups in their order
 * @param longest maximum of seconds of one rollout
 */
function simulate(
  expected: readonly RolloutHistory[],
  size: number,
  slots: number,
  longest: number,
): RunForecast['seconds'] {
  const draw = createNormal(SEED);
  const rollouts = expected.flatMap((one) => Array.from({ length: size }, () => one));
  const runs = Math.max(1, Math.min(RUNS, Math.floor(MOST_SIMULATED / rollouts.length)));
  const simulated = Array.from({ length: runs }, () => {
    const durations = rollouts.map(({ logMean, logVariance }) =>
      Math.min(longest, Math.exp(logMean + Math.sqrt(logVariance) * draw())),
    );
    return { seconds: makespan(durations, slots), ideal: idealMakespan(durations, slots) };
  });
  const sorted = simulated.map(({ seconds }) => seconds).sort((a, b) => a - b);
  const at = (share: number): number => rounded(sorted[Math.round(share * (runs - 1))] ?? 0);
  const mean = (key: 'seconds' | 'ideal'): number =>
    rounded(simulated.reduce((sum, one) => sum + one[key], 0) / runs);
  return { expected: mean('seconds'), low: at(LOW), high: at(HIGH), ideal: mean('ideal') };
}

const longestOf = ({ agent, evaluation }: Pick<RunRecord, 'agent' | 'evaluation'>): number =>
  agent.time_limit + evaluation.timeout;

const rounded = (seconds: number): number => Math.round(seconds * 100) / 100;
