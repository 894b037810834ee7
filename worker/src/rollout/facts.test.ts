import type { RewardFacts } from '@swefarm/shared';
import { bareFacts, bareInstance, bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import type { AgentWork, Task } from './context.ts';
import { factsOf, judge } from './facts.ts';

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

test('the facts have turns of all lines, and the tokens of the longest line that is trained on', () => {
  const turn = (prompt: number, answer: number) => ({
    ...{ message: 0, tokens: null, usage: { prompt_tokens: prompt, completion_tokens: answer } },
  });
  const line = (masked: string | null, ...turns: object[]) => ({
    ...{ id: masked ?? 'L2', kind: 'subagent', from: null, masked, messages: [], turns },
  });
  const trajectory = {
    ...{ messages: [], turns: [turn(100, 10), turn(150, 20)] },
    lines: [line(null, turn(50, 10), turn(200, 5)), line('side', turn(10, 1), turn(900, 9))],
  };
  const factsWith = (end: object | null) =>
    factsOf(
      { run: bareRun(), instance: bareInstance() } as Task,
      { end, patch: '' } as unknown as AgentWork,
      { blank: 'tests_run' },
    );
  const end = { trajectory, malformed_answers: 2, exit_status: 'submitted' };
  expect(factsWith(end)).toMatchObject({ turns: 6, malformed_answers: 2, sequence_tokens: 155 });
  const silent = { ...trajectory, turns: [{ ...turn(0, 0), usage: null }], lines: [] };
  expect(factsWith({ ...end, trajectory: silent })).toMatchObject({ turns: 1, sequence_tokens: null });
  expect(factsWith(null)).toMatchObject({ turns: null, malformed_answers: null, sequence_tokens: null });
});

test('the reward has the parts and the weights of the run', () => {
  const { reward } = bareRun();
  const run = { ...bareRun(), reward: { ...reward, weights: 'resolved=1,turns=-0.1' } };
  const task = { run, trace: { trajectory: { turns: [{}] } } } as unknown as Task;
  const decided = judge(task, bareFacts({ turns: 3 }), plan);
  expect(decided).toMatchObject({
    ...{ reward: 0.7, reward_components: { resolved: 1, turns: -0.3 } },
    reward_parts: { resolved: 1, turns: 3, submitted: 1, invalid_patch: 0 },
  });
});
