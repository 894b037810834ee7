import { expect, test } from 'vitest';
import { boundStatuses } from './statuses.ts';

const lengthOf = (map: object): number => JSON.stringify(map).length;

test('an ordinary report contains every test in its order', () => {
  const outcomes = new Map([
    ['b', 'PASSED'],
    ['a', 'FAILED'],
  ]);
  expect(boundStatuses(outcomes)).toEqual({ map: { b: 'PASSED', a: 'FAILED' }, omitted: 0 });
});

test('names of control characters do not exceed the limit of a report', () => {
  const outcomes = new Map<string, string>(
    Array.from({ length: 63 }, (_, n) => [`${'\x01'.repeat(1024 ** 2)}${n}`, 'PASSED'] as const),
  );
  outcomes.set('t.py::test_a', 'FAILED');
  expect(boundStatuses(outcomes)).toEqual({ map: { 't.py::test_a': 'FAILED' }, omitted: 63 });
});

test('many names within the bound of one name are bounded in sum', () => {
  const outcomes = new Map(
    Array.from({ length: 20_000 }, (_, n) => [`${'\x01'.repeat(3_900)}${n}`, 'PASSED'] as const),
  );
  const { map, omitted } = boundStatuses(outcomes);
  expect(lengthOf(map)).toBeLessThan(33 * 1024 ** 2);
  expect(Object.keys(map).length + omitted).toBe(20_000);
});

test('very many short names are bounded in number', () => {
  const outcomes = new Map(Array.from({ length: 200_001 }, (_, n) => [`t${n}`, 'PASSED'] as const));
  expect(boundStatuses(outcomes).omitted).toBe(1);
});
