/**
 * Claim, journal, commit, cancellation and maintenance on a real Redis, under random orders of faults: each rollout has exactly one
 * result. BullMQ's default settings have a counterexample.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openFarm, queueSettings } from '../../src/index.ts';
import { connectRedis } from '../../src/redis/connect.ts';
import { keysFor } from '../../src/redis/keys.ts';
import { testConfig } from '../farm.ts';
import type { QueueRules } from './delivery.ts';
import { openWorld, type Step, WORKERS } from './world.ts';

const SIZE = 2;
const RUNS = 300;
const FORGETFUL_RUNS = 150;
const OURS: QueueRules = { maxStalledCount: queueSettings.maxStalledCount, outcomeBy: 'commit' };
/** Defaults of BullMQ 6: one lost lock is allowed, and the return value of a job is its outcome. */
const DEFAULTS: QueueRules = { maxStalledCount: 1, outcomeBy: 'completion' };

const choice = fc.nat({ max: 5 });
const worker = fc.nat({ max: WORKERS - 1 });
const steps: fc.WeightedArbitrary<Step>[] = [
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('claim' as const), worker, choice }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('finish' as const, 'fail', 'pause', 'die', 'drain'), choice }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('resubmit' as const, 'cancel', 'keep', 'keeper dies half way'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose job' as const), index: choice }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('beat' as const), worker }) },
];
const forgetful: typeof steps = [
  ...steps,
  { weight: 4, arbitrary: fc.record({ do: fc.constant('claim' as const), worker, choice }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('go back' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('copy' as const, 'locks lapse') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('store' as const), choice }) },
];

async function check(rules: QueueRules, seed: number, kinds = steps) {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const { redis } = await connectRedis(config, 'producer');
  const ground = { farm, redis, keys: keysFor(config.redis_prefix) };
  const all = fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 24 });
  const property = fc.asyncProperty(all, async (order) => {
    const world = await openWorld(ground, SIZE, rules);
    for (const one of order) await world.step(one);
    await world.finish();
    const once = [...(await world.results()).values()].every((count) => count === 1);
    return once && (await world.torn()).length === 0;
  });
  const details = await fc.check(property, {
    seed,
    numRuns: kinds === forgetful ? FORGETFUL_RUNS : RUNS,
    endOnFailure: rules === DEFAULTS,
  });
  redis.disconnect();
  return details;
}

const seed = Number(process.env.SWEFARM_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

test('each rollout has exactly one result in any order of events', async () => {
  const { failed, counterexample, numRuns } = await check(OURS, seed);
  const found = JSON.stringify(counterexample?.[0] ?? null);
  expect(failed, `seed ${seed} (SWEFARM_TEST_SEED), after ${numRuns} runs: ${found}`).toBe(false);
});

test('after Redis returns to an older copy, result and artifact are of the same attempt', async () => {
  const { failed, counterexample, numRuns } = await check(OURS, seed, forgetful);
  const found = JSON.stringify(counterexample?.[0] ?? null);
  expect(failed, `seed ${seed} (SWEFARM_TEST_SEED), after ${numRuns} runs: ${found}`).toBe(false);
});

test("BullMQ's default settings have a counterexample", async () => {
  const { failed, counterexample } = await check(DEFAULTS, 7);
  expect(failed, 'seed 7').toBe(true);
  expect(counterexample?.[0]?.length).toBeGreaterThan(0);
});
