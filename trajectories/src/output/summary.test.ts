import { expect, test } from 'vitest';
import { aFailure, aLine } from '../../test/result.ts';
import { outputLine } from './line.ts';
import { summarise } from './summary.ts';

const lines = [
  aLine(),
  aLine({ rollout_index: 1, resolved: false, reward: 0, turns: 20, exit_status: 'turn_limit' }),
  outputLine(aFailure({ rollout_index: 2 }), { patch: null, report: null }),
  aLine({ instance_id: 'c__d-2', outcome: 'cancelled', resolved: null, reward: null }),
];

test('groups are counted from lines; means exclude failed and cancelled rollouts', () => {
  const { groups, all } = summarise(['a__b-1', 'c__d-2', 'e__f-3'], lines);
  expect(groups[0]).toMatchObject({
    rollouts: 3,
    judged: 2,
    failed: 1,
    resolved: 1,
    reward_mean: 0.5,
    turns_mean: 16,
    exit_statuses: { submitted: 1, turn_limit: 1 },
    failures: { 'policy/policy_unreachable': 1 },
  });
  expect(groups[1]).toMatchObject({ judged: 0, cancelled: 1, reward_mean: null, turns_mean: null });
  expect(groups[2]).toMatchObject({ rollouts: 0, judged: 0 });
  expect(all).toMatchObject({ rollouts: 4, judged: 2, resolved: 1, failed: 1, cancelled: 1 });
});
