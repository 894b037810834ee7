import { expect, test } from 'vitest';
import { createPolicyPaces } from './policypaces.ts';

test('a pace is a share of the median of the run; 0 without tokens, null with too few others', () => {
  const paces = createPolicyPaces();
  const note = (id: string, tokens: number, seconds = 10, run = 'run') =>
    paces.record(run, id, { tokens, seconds });
  expect(paces.of('run', 'a')).toBe(0);
  note('a', 100);
  expect(paces.of('run', 'a')).toBeNull();
  note('b', 400);
  note('c', 500);
  note('quiet', 0, 0);
  note('elsewhere', 1, 10, 'other');
  expect(paces.of('run', 'a')).toBeNull();
  note('d', 300);
  expect(paces.of('run', 'a')).toBeCloseTo(0.25);
  expect(paces.of('run', 'quiet')).toBe(0);
  note('e', 500);
  expect(paces.of('run', 'a')).toBeCloseTo(100 / 450);
  // A record has the sums of the rollout, so a later one replaces the earlier one.
  note('a', 4500, 100);
  expect(paces.of('run', 'a')).toBeCloseTo(1);
});

test('the numbers of remembered rollouts and runs are bounded', () => {
  const paces = createPolicyPaces();
  for (let index = 0; index < 1000; index++)
    paces.record('run', `r${index}`, { tokens: index + 1, seconds: 1 });
  expect(paces.of('run', 'r0')).toBe(0);
  expect(paces.of('run', 'r999')).toBeGreaterThan(1);
  for (let index = 0; index < 100; index++) paces.record(`run${index}`, 'r', { tokens: 1, seconds: 1 });
  expect(paces.of('run', 'r999')).toBe(0);
});
