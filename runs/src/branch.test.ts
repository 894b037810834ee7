import { RunRecord, type Trajectory } from '@swefarm/shared';
import { bareInstance, bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { branchRun } from './branch.ts';

const turn = (message: number) => ({ message, commands: [], model_seconds: 1 });
const trajectory = {
  messages: ['user', 'assistant', 'user', 'assistant'].map((role) => ({ role, content: role })),
  turns: [turn(1), turn(3)],
} as unknown as Trajectory;

test('a branch of a run that draws its groups is a run of one group, without draws and forecast', () => {
  const until = { groups: 1, keep: 'mixed', max: null, ahead: 0, seed: 1, strata: {} };
  const forecast = {
    rollouts: 8,
    instances: 4,
    unknown: 4,
    slots: 0,
    seconds: null,
    tokens: null,
    cost: null,
  };
  const run = bareRun({ until: until as never, forecast, oversample: 2, refills: 1, group_size: 4 });
  const branching = { rolloutId: 'r.i.0', turn: 1, branches: 3 };
  const { record, patches } = branchRun(run, bareInstance(), trajectory, branching);
  expect(RunRecord.parse(record)).toMatchObject({
    ...{ group_size: 3, oversample: 0, refills: 0, until: null, dataset: { instances: 1 } },
    branch_of: { rollout_id: 'r.i.0', turn: 1 },
  });
  expect(record.forecast).toBeUndefined();
  expect([...(patches?.values() ?? [])].map((texts) => texts.length)).toEqual([1]);
});
