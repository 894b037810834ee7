/** Minimal runs, instances and reward facts for tests of the code that uses them. */
import { Instance, newId, type RewardFacts, RunRecord } from '@swefarm/shared';

export const bareRun = (change: Partial<RunRecord> = {}): RunRecord =>
  RunRecord.parse({
    format: 'swefarm-run-1',
    run_id: newId(),
    created_at: '2026-01-02T03:04:05.000Z',
    dataset: { path: 'rows.jsonl', sha256: 'ab', instances: 1 },
    group_size: 4,
    agent: {},
    policy: null,
    sandbox: {},
    evaluation: {},
    reward: { table: 'default', hash: 'cd' },
    ...change,
  });

export const bareInstance = (change: Partial<Instance> = {}): Instance =>
  Instance.parse({
    instance_id: 'a__b.c-1',
    repo: 'a/b',
    base_commit: 'f00',
    problem_statement: 'p',
    FAIL_TO_PASS: ['t::one'],
    PASS_TO_PASS: [],
    family: 'custom',
    image: 'example:1',
    ...change,
  });

/** The reward facts of a rollout that submitted and whose tests passed. */
export const bareFacts = (change: Partial<RewardFacts> = {}): RewardFacts => ({
  exit_status: 'submitted',
  patch_state: 'applied',
  patch_origin: 'tree',
  evaluation: 'completed',
  resolved: true,
  trust: 'clean',
  cut_by_token_limit: false,
  policy_share: 0,
  sandbox_killed: false,
  gold_healthy: null,
  gold_time_share: null,
  ungraded: false,
  ...change,
});

/** An eval script whose tests run a line of Python (`w` writes output) and then print one counted result. */
export const printingScript = (prints: string): string =>
  [
    '#!/bin/bash',
    'set -x',
    ": '>>>>> Start Test Output'",
    `python3 -c "import sys; w = sys.stdout.write; ${prints}"`,
    'echo; echo PASSED t.py::test_a; echo "=== 1 passed in 1.00s ==="',
    ": '>>>>> End Test Output'",
    '',
  ].join('\n');
