/**
 * A training step with the history of one earlier step: its time over the ideal (no order is faster), with the longest expected groups first
 * and in the given order, and the error of its forecast. Simulated on large farms (real history, order and forecast; durations are numbers),
 * and real on one worker whose rollouts sleep.
 */
import { forecastRun, idealMakespan, inOrder, makespan, requireForecast } from '@swefarm/runs';
import { type Farm, loadConfig, NO_SECONDS, newId, openFarm, type RunRecord } from '@swefarm/shared';
import { bareResult } from '@swefarm/testkit';
import { type BenchEnvironment, openEnvironment } from './farm.ts';
import { measureRealSteps, type RealSteps } from './order/real.ts';
import { drawSteps, named, recordOf, SHARE_OF_INSTANCE } from './order/steps.ts';
import { table } from './print.ts';
import { median, rounded } from './statistics.ts';

export type OrderSize = {
  instances: number;
  group: number;
  /** Number of simulated steps, each with instances of its own. */
  steps: number;
  farms: readonly { nodes: number; slots: number }[];
  /** Slots of the worker, and mean seconds of its rollouts; null: no real step. */
  real: { slots: number; mean_seconds: number } | null;
};

type Ratios = { p50: number; worst: number };
type OrderRow = {
  nodes: number;
  slots: number;
  /** Share of the steps in which the longest rollout alone determines the ideal time. */
  bound_by_longest: number;
  given: Ratios;
  longest: Ratios;
  /** Forecast to actual time, minus 1: median of the absolute values, and share of the steps within the bounds. */
  forecast_error: number;
  within_bounds: number;
};

export type OrderPart = { share_of_instance: number; rows: OrderRow[]; real: RealSteps | null };

export async function measureOrder(size: OrderSize): Promise<OrderPart> {
  await using environment = await openEnvironment();
  const rows: OrderRow[] = [];
  const steps = await Array.fromAsync({ length: size.steps }, (_, at) =>
    simulateStep(environment, size, at + 1),
  );
  for (const [at, { nodes, slots }] of size.farms.entries()) {
    const own = steps.flatMap((step) => step[at] ?? []);
    const ratios = (of: 'given' | 'longest'): Ratios => {
      const all = own.map((step) => step[of] / step.ideal);
      return { p50: rounded(median(all), 2), worst: rounded(Math.max(...all), 2) };
    };
    const share = (test: (step: SimulatedStep) => boolean) =>
      rounded(own.filter(test).length / own.length, 2);
    rows.push({
      ...{ nodes, slots, given: ratios('given'), longest: ratios('longest') },
      bound_by_longest: share(({ bound }) => bound),
      forecast_error: rounded(median(own.map((step) => Math.abs(step.expected / step.longest - 1))), 2),
      within_bounds: share(({ low, high, longest }) => longest >= low && longest <= high),
    });
  }
  const real = size.real && (await measureRealSteps(environment, { ...size, ...size.real }));
  return { share_of_instance: SHARE_OF_INSTANCE, rows, real };
}

type SimulatedStep = Record<'given' | 'longest' | 'ideal' | 'expected' | 'low' | 'high', number> & {
  bound: boolean;
};

/** Returns the times of one step for each farm. */
async function simulateStep(
  { redisUrl }: BenchEnvironment,
  { instances: count, group, farms }: OrderSize,
  seed: number,
): Promise<SimulatedStep[]> {
  const flags = { redisUrl, redisPrefix: `order-${seed}` };
  await using farm = await openFarm(loadConfig('producer', { env: {}, flags }), 'producer');
  const drawn = drawSteps(seed, { instances: count, group });
  const run = recordOf(count, group, { policyUrl: ['http://127.0.0.1:1/v1'], model: 'm' });
  const instances = drawn.map((_, at) => named(at));
  await farm.runs.create(run, instances);
  for (const [at, { first }] of drawn.entries())
    await Promise.all(first.map((seconds, index) => commitSeconds(farm, run, `i-${at}`, index, seconds)));
  const durationsOf = (ordered: readonly { instance_id: string }[]) =>
    ordered.flatMap(({ instance_id: id }) => drawn[Number(id.slice(2))]?.second ?? []);
  const given = durationsOf(instances);
  const known = await farm.history.read(run.agent, instances);
  const longest = durationsOf(await inOrder(farm, run, instances, known));
  return await Promise.all(
    farms.map(async ({ nodes, slots: each }) => {
      const slots = nodes * each;
      const registry = { list: async () => [{ slots, paused: null }] } as unknown as Farm['registry'];
      const { seconds } = requireForecast(await forecastRun({ registry }, run, instances, known));
      const { expected = 0, low = 0, high = 0 } = seconds ?? {};
      const ideal = idealMakespan(given, slots);
      const times = { given: makespan(given, slots), longest: makespan(longest, slots) };
      return { ...times, ideal, expected, low, high, bound: Math.max(...given) >= ideal };
    }),
  );
}

async function commitSeconds(farm: Farm, run: RunRecord, instance_id: string, index: number, agent: number) {
  const result = bareResult({
    ...{ run_id: run.run_id, instance_id, family: 'custom', rollout_index: index, claim: newId() },
    seconds: { ...NO_SECONDS, agent, total: agent },
  });
  await farm.commit(run, result);
}

export function printOrder({ rows, real, share_of_instance }: OrderPart): string {
  const times = ({ p50, worst }: Ratios) => `${p50}, ${worst}`;
  const body = rows.map((row) => [
    `${row.nodes} x ${row.slots}`,
    ...[times(row.given), times(row.longest), row.forecast_error, row.within_bounds, row.bound_by_longest],
  ]);
  const head = [
    'nodes x slots',
    'given',
    'longest first',
    'forecast error',
    'within bounds',
    'bound by longest',
  ];
  const lines = real
    ? [
        `Real, ${real.rollouts} rollouts on ${real.slots} slots: given order ${real.given.over_ideal}, longest first ${real.longest.over_ideal} of the ideal ` +
          `(${real.longest.seconds} s, forecast ${real.longest.forecast_seconds} s)`,
      ]
    : [];
  return [
    `Time of a step over its ideal (median, worst), with the history of one earlier step; ${100 * share_of_instance} % of the variance is the instance's`,
    table([head, ...body]),
    ...lines,
  ].join('\n');
}
