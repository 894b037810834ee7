import { expect, test } from 'vitest';
import { isDue } from './followpolicy.ts';

test.each([
  ['step-120', 10, true],
  ['step-125', 10, false],
  ['0', 10, true],
  ['step-007', 1, true],
  ['step-123456789012345678901234567890', 10, true],
])('version %s with --every %i: %s', (version, every, due) => {
  expect(isDue(['step-110', version], version, [true, false], every)).toBe(due);
});

test('versions without a number are counted from the last one that has a run', () => {
  const versions = ['a', 'b', 'c', 'd'];
  const dueWith = (...stored: boolean[]) => versions.filter((one) => isDue(versions, one, stored, 2));
  expect(dueWith(false, false, false, false)).toEqual(versions);
  expect(dueWith(true, false, false, false)).toEqual(['c', 'd']);
  expect(dueWith(false, false, true, false)).toEqual([]);
});
