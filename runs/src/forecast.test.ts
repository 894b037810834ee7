import type { KnownHistory, RolloutHistory, RunRecord } from '@swefarm/shared';
import { bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import {
  expectedOf,
  forecastRun as forecastOf,
  inOrder,
  leadOf,
  placedDraws,
  requireForecast,
} from './forecast.ts';
import { createNormal, idealMakespan, makespan } from './schedule.ts';

const history = (seconds: number, change: Partial<RolloutHistory> = {}): RolloutHistory => ({
  ...{ count: 16, logMean: Math.log(seconds), logVariance: 0, seconds, agentSeconds: seconds },
  ...{ evaluationSeconds: 0, promptTokens: 1000, completionTokens: 100, turns: 3 },
  ...change,
});

const named = (instance_id: string) => ({ instance_id, family: 'custom' as const });

const farmOf = (of: Record<string, RolloutHistory>, prior: RolloutHistory | null, slots = 2) => ({
  history: {
    read: async (): Promise<KnownHistory> => ({ of: new Map(Object.entries(of)), prior: () => prior }),
  },
  registry: {
    list: async () => [
      { slots, paused: null },
      { slots: 99, paused: 'disk' },
    ],
  },
});
type AskedFarm = Parameters<typeof forecastOf>[0] & Parameters<typeof inOrder>[0];
const asFarm = (farm: ReturnType<typeof farmOf>) => farm as unknown as AskedFarm;

const forecastRun = async (farm: AskedFarm, run: RunRecord, instances: ReturnType<typeof named>[]) =>
  forecastOf(farm, run, instances, await farm.history.read(run.agent, instances));

test('longest expected groups go first, unknown ones between, and equal ones as given', async () => {
  const farm = asFarm(farmOf({ short: history(10), long: history(90) }, history(30)));
  const given = ['short', 'new-1', 'new-2', 'long'].map(named);
  const order = async (order: 'longest' | 'given') =>
    (await inOrder(farm, bareRun({ order }), given)).map(({ instance_id: id }) => id);
  expect(await order('longest')).toEqual(['long', 'new-1', 'new-2', 'short']);
  expect(await order('given')).toEqual(['short', 'new-1', 'new-2', 'long']);
});

test('few rollouts of an instance count together with one of its family', async () => {
  const known = await farmOf({ a: history(90, { count: 1 }) }, history(30)).history.read();
  expect(expectedOf(known, named('a'))?.seconds).toBe(60);
  expect(expectedOf(known, named('b'))?.seconds).toBe(30);
});

test('a forecast schedules the rollouts on the slots of workers that claim', async () => {
  const price = { prompt: 2, completion: 10 };
  const policy = { urls: ['http://p/v1'], model: 'm', price };
  const run = bareRun({ group_size: 2, policy: policy as never });
  const farm = asFarm(farmOf({ a: history(10), b: history(40) }, history(25)));
  const forecast = requireForecast(await forecastRun(farm, run, [named('a'), named('b'), named('c')]));
  expect(forecast).toMatchObject({ rollouts: 6, instances: 3, unknown: 1, slots: 2 });
  expect(forecast.tokens).toEqual({ prompt: 6000, completion: 600 });
  expect(forecast.cost).toBeCloseTo(0.018, 6);
  const { expected, low, high, ideal } = forecast.seconds ?? { expected: 0, low: 0, high: 0, ideal: 0 };
  expect([low, high].map(Math.round)).toEqual([Math.round(expected), Math.round(expected)]);
  expect(ideal).toBeLessThanOrEqual(expected);
  // Both are a little closer to their family: 38.9 + 25 + 10.6 s on each slot.
  expect(expected).toBeCloseTo(74.5, 1);
});

test('a forecast without workers has no time, and one without history has no tokens', async () => {
  const of = async (farm: ReturnType<typeof farmOf>) =>
    await forecastRun(asFarm(farm), bareRun(), [named('a')]);
  expect(await of(farmOf({}, history(10), 0))).toMatchObject({ slots: 0, seconds: null, cost: null });
  expect(await of(farmOf({}, null))).toMatchObject({ unknown: 1, seconds: null, tokens: null });
});

test('a slow call is queued before a bounded number of other calls', async () => {
  const farm = asFarm(farmOf({ short: history(1), long: history(300), usual: history(30) }, history(30)));
  const leads = ['short', 'usual', 'new', 'long'].map((id) => leadOf(farm, bareRun(), named(id)));
  expect(await Promise.all(leads)).toEqual([-512, 0, 0, 512]);
  expect(await leadOf(farm, bareRun({ order: 'given' }), named('long'))).toBe(0);
});

test('list scheduling gives each rollout the slot that is free first', () => {
  expect(makespan([4, 3, 3, 2, 2], 2)).toBe(8);
  expect(makespan([2, 2, 3, 3, 4], 2)).toBe(9);
  expect(idealMakespan([4, 3, 3, 2, 2], 2)).toBe(7);
  expect(idealMakespan([9, 1], 4)).toBe(9);
  expect(makespan([], 4)).toBe(0);
});

test('equal seeds draw equal numbers of a standard normal distribution', () => {
  const draws = (seed: number) => Array.from({ length: 20_000 }, createNormal(seed));
  const [first, second] = [draws(1), draws(1)];
  expect(second).toEqual(first);
  const mean = first.reduce((sum, one) => sum + one, 0) / first.length;
  expect(Math.abs(mean)).toBeLessThan(0.03);
  expect(Math.abs(first.reduce((sum, one) => sum + one * one, 0) / first.length - 1)).toBeLessThan(0.05);
});

test('groups of draws are queued longest first, even if they are drawn later', async () => {
  const known = await farmOf({ short: history(1), long: history(300) }, history(30)).history.read();
  const ids = ['short', 'new', 'other', 'long'];
  const draws = ids.map((instance_id, sequence) => ({
    ...{ instance_id, image: 'i', sequence, stratum: 'all' as const, chance: 1 },
  }));
  const byId = new Map(ids.map((id) => [id, named(id)]));
  const places = (opened: number) => placedDraws(draws, opened, byId, known).map(({ sequence }) => sequence);
  expect(places(4)).toEqual([3, 1, 2, 0]);
  expect(places(3)).toEqual([2, 0, 1, 0]);
});
