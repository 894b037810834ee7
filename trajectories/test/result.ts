/** Complete results, failures, lines and reports for tests; `over` replaces fields. */
import type { Report, Result } from '@swefarm/shared';
import { bareReport, bareResult } from '@swefarm/testkit';
import { type OutputLine, outputLine } from '../src/output/line.ts';

export const aResult = (over: Partial<Result> = {}): Result =>
  bareResult({
    ...{ runtime: 'docker', reward_table: 'swefarm-reward-1:00', finished_at: 1_700_000_000_000 },
    rollout_id: 'r1.a__b-1.0',
    ...over,
  });

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

export const aReport = (over: Partial<Report> = {}): Report =>
  bareReport({
    tests_status: {
      FAIL_TO_PASS: { success: ['test_ü'], failure: [] },
      PASS_TO_PASS: { success: [], failure: [] },
      FAIL_TO_FAIL: { success: [], failure: [] },
      PASS_TO_FAIL: { success: [], failure: [] },
    },
    status_map: { test_ü: 'PASSED' },
    applied_with: 'git apply --verbose --reject',
    ...over,
  });
