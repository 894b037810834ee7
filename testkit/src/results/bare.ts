/** Minimal records for tests of the code that uses them; `change` replaces fields. */
import {
  type ArtifactContent,
  Instance,
  NO_SECONDS,
  newId,
  type Report,
  Result,
  type RewardFacts,
  RunRecord,
  type Trajectory,
  type Turn,
} from '@swefarm/shared';

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

/** Returns a resolved rollout. Its default `rollout_id` is made from the run, instance and index in `change`. */
export function bareResult(change: Partial<Result> = {}): Result {
  const { run_id = 'r1', instance_id = 'a__b-1', rollout_index = 0 } = change;
  return Result.parse({
    ...{ format: 'swefarm-result-1', run_id, instance_id, rollout_index, attempt: 1 },
    rollout_id: `${run_id}.${instance_id}.${rollout_index}`,
    ...{ worker: 'w1', node: 'n1', runtime: 'rootfs' },
    ...{ outcome: 'judged', resolved: true, reward: 1, reward_row: 'resolved', reward_table: 'default:cd' },
    ...{ turns: 12, exit_status: 'submitted', failure: null, facts: null },
    ...{ tokens: { prompt: 10, completion: 5 }, policy_version: null },
    seconds: {
      ...NO_SECONDS,
      sandbox: 1,
      agent: 5,
      model: 3,
      command: 2,
      patch: 0.1,
      evaluation: 4,
      total: 10,
    },
    ...{ artifact: null, finished_at: 1 },
    ...change,
  });
}

export const bareReport = (change: Partial<Report> = {}): Report => ({
  ...{ format: 'swefarm-report-1', instance_id: 'a__b-1', patch_state: 'applied', evaluation: 'completed' },
  ...{ resolved: true, tests_status: null, status_map: null, applied_with: 'git apply', test_exit_code: 0 },
  ...{ grader: 'swebench-4.1.0', parser: 'pytest', image_digest: null },
  trust: { level: 'clean', reasons: [] },
  ...change,
});

/** Returns the turn whose answer is message number `message`, without ids and commands. */
export const bareTurn = (message: number, change: Partial<Turn> = {}): Turn => ({
  ...{ message, finish_reason: 'stop', model_seconds: 1, usage: null, tokens: null, commands: [] },
  policy_version: { start: null, end: null },
  ...change,
});

export const bareTrajectory = (change: Partial<Trajectory> = {}): Trajectory => ({
  ...{ format: 'swefarm-trajectory-1', token_mode: 'text', model: 'm', endpoint: null, messages: [] },
  ...{ turns: [], exit_status: 'submitted' },
  ...change,
});

export const bareArtifact = (change: Partial<ArtifactContent> = {}): ArtifactContent => ({
  ...{ format: 'swefarm-artifact-1', rollout_id: 'r.i.0', attempt: 1, instance_id: 'i', trajectory: null },
  ...{ patch: null, report: null, test_log: null, eval_script: null, failure_detail: null },
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
