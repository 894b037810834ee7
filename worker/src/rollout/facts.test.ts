import type { RewardFacts } from '@swefarm/shared';
import { bareFacts, bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import type { Task } from './context.ts';
import { judge } from './facts.ts';

const FACTS = bareFacts({
  ...{ exit_status: 'context_limit', patch_state: 'empty', evaluation: 'not_run', resolved: null },
});
const plan = { grader: 'swebench-4.1.0' } as Parameters<typeof judge>[2];
const judged = (turns: number, facts: Partial<RewardFacts>, type: 'mini' | 'noop' = 'mini') => {
  const run = { ...bareRun(), agent: { ...bareRun().agent, type } };
  const task = { run, trace: { trajectory: { turns: Array.from({ length: turns }) } } } as unknown as Task;
  return judge(task, { ...FACTS, ...facts }, plan);
};

test.each<[Partial<RewardFacts>, string]>([
  [{ exit_status: 'context_limit' }, 'policy_context'],
  [{ exit_status: 'context_limit', ungraded: true }, 'policy_context'],
  [{ exit_status: 'time_limit', policy_share: 0.1 }, 'policy_slow'],
  [{ exit_status: null, sandbox_killed: true }, 'sandbox_lost'],
])('a rollout without a turn is never judged: %j is %s', (facts, failureClass) => {
  expect(() => judged(0, facts)).toThrow(expect.objectContaining({ failureClass }));
});

test('a rollout with a turn is judged, and so is one of an agent without a policy', () => {
  expect(judged(1, {})).toMatchObject({ reward: 0, row: 'empty_patch' });
  expect(judged(0, { exit_status: null }, 'noop')).toMatchObject({ reward: 0, row: 'empty_patch' });
});
