import { DryRunScript, secondsOf } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { createFaults } from './faults.ts';
import type { Name } from './stored.ts';

const nameOf = (at: number, group = 0): Name => {
  const instance = `a__b-${group}`;
  return { instance, visit: 0, index: at, text: `7/${instance}/0/${at}` };
};
const NAMES = Array.from({ length: 1_000 }, (_, at) => nameOf(at % 8, Math.floor(at / 8)));
const faultsOf = (script: object) => createFaults(DryRunScript.parse({ seed: 7, ...script }));

test('faults depend on the seed, not on the order of the rollouts', () => {
  const script = { rollouts: [{ fail: 'lost', chance: 0.1 }], delay: { from: 1, to: 2 } };
  const of = faultsOf(script);
  const first = NAMES.map((name) => of(name, 0));
  const again = faultsOf(script);
  expect(
    NAMES.toReversed()
      .map((name) => again(name, 0))
      .toReversed(),
  ).toEqual(first);
  expect(first.filter(({ fail }) => fail === 'lost').length).toBeGreaterThan(70);
  expect(first.filter(({ fail }) => fail === 'lost').length).toBeLessThan(130);
  expect(first.every(({ delaySeconds }) => delaySeconds >= 1 && delaySeconds < 2)).toBe(true);
});

test('rollouts are numbered in order, and a repeated one keeps its number', () => {
  const of = faultsOf({ rollouts: [{ fail: 'lost', every: 3 }], groups: [{ short: 6, nth: [2] }] });
  const failing = NAMES.slice(0, 24).flatMap((name, at) =>
    of(name, 0).fail ? [[at, of(name, 0).fail]] : [],
  );
  expect(failing).toEqual([
    ...[2, 5, 8, 11].map((at) => [at, 'lost']),
    [14, 'sandbox_lost'],
    [15, 'sandbox_lost'],
    ...[17, 20, 23].map((at) => [at, 'lost']),
  ]);
});

test('the first fault of each kind applies', () => {
  const rollouts = [{ fail: 'lost' }, { delay: 4 }, { fail: 'bug' }, { versions: ['a', 'b'] }];
  expect(faultsOf({ rollouts })(nameOf(0), 0)).toMatchObject({
    ...{ fail: 'lost', delaySeconds: 4, versions: ['a', 'b'], cancels: null },
    names: ['fail: lost', 'delay', 'fail: bug', 'versions: a, b'],
  });
  expect(faultsOf({ groups: [{ cancel: true }] })(nameOf(0), 0).cancels).toBe('group');
});

test('a delay is fixed, between bounds, log-normal, or a share of the stored time', () => {
  expect(secondsOf(3, 'x')).toBe(3);
  expect(secondsOf({ stored: 0.5 }, 'x', 40)).toBe(20);
  const drawn = Array.from({ length: 2_001 }, (_, at) => secondsOf({ median: 10, sigma: 0.5 }, String(at)));
  const sorted = drawn.toSorted((a, b) => a - b);
  expect(sorted[1_000]).toBeGreaterThan(9.3);
  expect(sorted[1_000]).toBeLessThan(10.7);
  // Entry 1,683 is the 84th percentile: one standard deviation above the median.
  expect(sorted[1_683]).toBeGreaterThan(10 * Math.exp(0.5) * 0.9);
  expect(sorted[1_683]).toBeLessThan(10 * Math.exp(0.5) * 1.1);
});
