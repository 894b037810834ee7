/**
 * Claim, journal, commit, cancel and keeper under every order of faults that fast-check thinks of, on a real Redis: at
 * the end each rollout has exactly one result. With BullMQ's defaults in place of our rules it has a counterexample.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { queueSettings } from '../../src/index.ts';
import { testFarm } from '../farm.ts';
import type { QueueRules } from './delivery.ts';
import { openWorld, type Step, WORKERS } from './world.ts';

const SIZE = 2;
const RUNS = 300;
const OURS: QueueRules = { maxStalledCount: queueSettings.maxStalledCount, outcomeBy: 'commit' };
/** BullMQ 6 as it comes: one lost lock is forgiven, and the return value of a job is its outcome. */
const DEFAULTS: QueueRules = { maxStalledCount: 1, outcomeBy: 'completion' };

const choice = fc.nat({ max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('claim' as const), worker: fc.nat({ max: WORKERS - 1 }), choice }),
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
);

async function check(rules: QueueRules, seed: number) {
  await using farm = await testFarm();
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 24 }), async (steps) => {
    const world = await openWorld(farm, SIZE, rules);
    for (const one of steps) await world.step(one);
    await world.settle();
    return [...(await world.results()).values()].every((count) => count === 1);
  });
  return await fc.check(property, { seed, numRuns: RUNS, endOnFailure: rules === DEFAULTS });
}

const seed = Number(process.env.SWEFARM_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

test('exactly one result per rollout, whatever order things happen in', async () => {
  const { failed, counterexample, numRuns } = await check(OURS, seed);
  const found = JSON.stringify(counterexample?.[0] ?? null);
  expect(failed, `seed ${seed} (SWEFARM_TEST_SEED), after ${numRuns} runs: ${found}`).toBe(false);
});

test("with BullMQ's defaults in place of ours there is a counterexample", async () => {
  const { failed, counterexample } = await check(DEFAULTS, 7);
  expect(failed, 'seed 7').toBe(true);
  expect(counterexample?.[0]?.length).toBeGreaterThan(0);
});
