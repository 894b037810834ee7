import { bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { runStatus } from './status.ts';

const counts = (committed: number): Parameters<typeof runStatus>[1] => ({
  ...{
    committed,
    resolved: 0,
    scored: 0,
    turns_sum: 0,
    rewarded: 0,
    reward_sum: 0,
    failures: {},
    ...{ drawn: 0, selected: 0, dropped: {}, mixed_groups: 0 },
    answers: 0,
    unread: {},
  },
  ...{ prompt_tokens: 0, completion_tokens: 0, exit_statuses: {} },
  outcomes: { judged: committed, failed: 0, cancelled: 0 },
});
const run = bareRun({
  group_size: 4,
  oversample: 2,
  dataset: { path: 'rows.jsonl', sha256: 'ab', instances: 3 },
});

test('the size of a run includes oversampled rollouts', () => {
  expect(runStatus(run, counts(12))).toMatchObject({ group_size: 4, rollouts: 18, committed: 12 });
});

test('the size of a run is never below its committed rollouts, which include refills', () => {
  expect(runStatus(run, counts(20)).rollouts).toBe(20);
});
