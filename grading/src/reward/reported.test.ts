import type { Report } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { decideReward, withReport } from './reward.ts';

const report = (changes: Partial<Report>): Report =>
  ({
    patch_state: 'not_applied',
    evaluation: 'completed',
    resolved: false,
    trust: { level: 'clean', reasons: [] },
    ...changes,
  }) as Report;

test.each([
  [true, 1],
  [false, 0],
])(
  'where the tests ran although the patch did not apply whole, they decide: resolved %s',
  (resolved, reward) => {
    const facts = withReport(bareFacts({}), report({ resolved }));
    expect(decideReward(facts)).toMatchObject({ reward, failure: null });
  },
);

test('a patch of the tree that does not apply earns 0 if the tests did not run', () => {
  const facts = withReport(bareFacts({}), report({ evaluation: 'not_run', resolved: null }));
  expect(decideReward(facts)).toMatchObject({ row: 'patch_broken', reward: 0 });
});

test('score and parts of an earlier report are removed', () => {
  const facts = bareFacts({ score: 0.5, reward_components: { tests: 0.5 } });
  const again = withReport(facts, report({ patch_state: 'applied' }));
  expect(again).not.toHaveProperty('score');
  expect(again).not.toHaveProperty('reward_components');
});
