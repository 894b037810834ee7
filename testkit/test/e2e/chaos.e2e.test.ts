/** A short seed of `npm run test:chaos`: every fault that needs no second minute, on a farm of processes. */
import { expect, test } from 'vitest';
import { runChaos } from '../../chaos/chaos.ts';

test('60 rollouts under a seeded schedule of faults: each its one result, what its script earns, and nothing left', async () => {
  const { timeline, problems, ...report } = await runChaos({
    ...{ seed: 1, rollouts: 60, workers: 3, short: true },
    limitMs: 8 * 60_000,
    onNote: () => undefined,
  });
  expect(problems, `seed ${report.seed}\n${timeline}`).toEqual([]);
  expect(report.results).toEqual({ 'reward 0': 24, 'reward 1': 36 });
  expect(Object.keys(report.faults)).toHaveLength(15);
});
