import type { RunForecast } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { renderForecast, renderForecastError } from './forecast.ts';

const FORECAST: RunForecast = {
  ...{ rollouts: 512, instances: 32, unknown: 3, slots: 64, cost: 4.2 },
  seconds: { expected: 2460, low: 2280, high: 2820, ideal: 2160 },
  tokens: { prompt: 12_300_000, completion: 45_000 },
};
const START = '2026-01-02T00:00:00.000Z';
const record = (forecast: RunForecast) => ({
  ...{ forecast, created_at: START },
  policy: { price: { prompt: 0.2, completion: 1 } },
});
const ended = (seconds: number, completion: number) => ({
  tokens: { prompt: 10_000_000, completion },
  finished_at: Date.parse(START) + 1000 * seconds,
});

test('a forecast has time with bounds, tokens, cost and the instances without history', () => {
  expect(renderForecast(FORECAST).split('\n')).toEqual([
    '512 rollouts of 32 instances, 3 without history on this farm (counted as the others of their family)',
    'time on 64 slots, if all are free and the policy admits all: 41 min (9 in 10 simulated runs: 38 min to 47 min); no order is faster than 36 min',
    'tokens: 12.3 M of prompts, 45 k sampled',
    'cost: $4.20',
  ]);
});

test('a forecast says why its time is unknown', () => {
  const nothing = { ...FORECAST, unknown: 0, seconds: null, tokens: null, cost: null };
  expect(renderForecast({ ...nothing, slots: 0 })).toMatch(/time: unknown, no worker claims rollouts$/);
  expect(renderForecast(nothing)).toMatch(/no rollout of this agent was judged on this farm in 30 days$/);
});

test('after a run its forecast is compared with its last result, tokens and cost', () => {
  const results = [ended(1000, 40_000), ended(3000, 20_000)];
  expect(renderForecastError(record(FORECAST), results)).toBe(
    'forecast: time 50 min for 41 min (+22 %, outside its bounds), sampled tokens 60 k for 45 k (+33 %), cost $4.06 for $4.20',
  );
  expect(renderForecastError(record(FORECAST), [ended(2300, 45_000)])).toMatch(/38 min .*−7 %, within/);
  expect(renderForecastError(record({ ...FORECAST, seconds: null }), results)).toBeNull();
});
