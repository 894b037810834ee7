/** Complete results, failures, lines and reports for tests; `over` replaces fields. */
import type { Report, Result } from '@swefarm/shared';
import { type OutputLine, outputLine } from '../src/output/line.ts';

export function aResult(over: Partial<Result> = {}): Result {
  return {
    format: 'swefarm-result-1',
    run_id: 'r1',
    rollout_id: 'r1.a__b-1.0',
    instance_id: 'a__b-1',
    rollout_index: 0,
    attempt: 1,
    worker: 'w1',
    node: 'n1',
    runtime: 'docker',
    outcome: 'judged',
    resolved: true,
    reward: 1,
    reward_row: 'resolved',
    reward_table: 'swefarm-reward-1:00',
    turns: 12,
    exit_status: 'submitted',
    failure: null,
    facts: null,
    tokens: { prompt: 10, completion: 5 },
    policy_version: null,
    seconds: {
      queued: 0,
      image: 0,
      sandbox: 1,
      agent: 5,
      model: 3,
      command: 2,
      patch: 0.1,
      evaluation: 4,
      total: 10,
    },
    artifact: null,
    finished_at: 1_700_000_000_000,
    ...over,
  };
}

export const aFailure = (over: Partial<Result> = {}): Result =>
  aResult({
    outcome: 'failed',
    resolved: null,
    reward: null,
    reward_row: 'failed',
    exit_status: null,
    turns: 0,
    failure: { stage: 'policy', class: 'policy_unreachable', message: 'refused', attempts: 5 },
    ...over,
  });

export const aLine = (over: Partial<Result> = {}, patch: string | null = ''): OutputLine =>
  outputLine(aResult(over), { patch, report: null });

export const aReport = (over: Partial<Report> = {}): Report => ({
  format: 'swefarm-report-1',
  instance_id: 'a__b-1',
  patch_state: 'applied',
  evaluation: 'completed',
  resolved: true,
  tests_status: {
    FAIL_TO_PASS: { success: ['test_ü'], failure: [] },
    PASS_TO_PASS: { success: [], failure: [] },
    FAIL_TO_FAIL: { success: [], failure: [] },
    PASS_TO_FAIL: { success: [], failure: [] },
  },
  status_map: { test_ü: 'PASSED' },
  applied_with: 'git apply --verbose --reject',
  test_exit_code: 0,
  grader: 'swebench-4.1.0',
  parser: 'pytest',
  image_digest: null,
  trust: { level: 'clean', reasons: [] },
  ...over,
});
