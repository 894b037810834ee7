import { expect, test } from 'vitest';
import { aLine } from '../../test/result.ts';
import { BranchRewards } from './branches.ts';

test('a reward behind a turn is the mean over its rewarded branches', () => {
  const branches = new BranchRewards();
  const note = (index: number, turn: number, reward: number | null) =>
    branches.note(
      aLine({
        ...{ rollout_id: `b${turn}.i.${index}`, reward, branch_of: { rollout_id: 'a.i.0', turn } },
        ...(reward === null ? { outcome: 'failed', resolved: null } : {}),
      }),
    );
  for (const [index, reward] of [1, 0, null].entries()) note(index, 12, reward);
  note(0, 12, 0.5);
  note(0, 3, null);
  branches.note(aLine({ rollout_id: 'a.i.0' }));
  expect(branches.of('a.i.0')).toEqual([
    { turn: 3, branches: 1, rewarded: 0, reward_mean: null },
    { turn: 12, branches: 3, rewarded: 2, reward_mean: 0.25 },
  ]);
  expect(branches.of('b12.i.0')).toEqual([]);
});
