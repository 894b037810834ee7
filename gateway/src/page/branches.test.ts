import { expect, test } from 'vitest';
import { branchesBelow } from './branches.ts';

const branch = (run_id: string, of: string) => ({ run_id, of, turn: 1, group_size: 1 });
const ALL = [
  branch('c', 'b.i.1'),
  branch('b', 'a.i.0'),
  branch('d', 'a.i.1'),
  branch('e', 'c.i.0'),
  branch('f', 'x.i.0'),
];
const below = (id: string) => branchesBelow(id, ALL).map(({ run_id }) => run_id);

test('branches of a run or a rollout include branches of branches', () => {
  expect(below('a')).toEqual(['b', 'd', 'c', 'e']);
  expect(below('a.i.0')).toEqual(['b', 'c', 'e']);
  expect(below('b.i.0')).toEqual([]);
  expect(below('b.i.1')).toEqual(['c', 'e']);
});

test('damaged records that continue one another do not cause an endless loop', () => {
  expect(branchesBelow('a', [branch('b', 'a.i.0'), branch('a', 'b.i.0')])).toHaveLength(2);
});
