/**
 * Judges as SWE-bench-Live does (70ec57e): no test of either list may fail, and every test of FAIL_TO_PASS must pass. A missing or skipped
 * test of PASS_TO_PASS is accepted and appears in neither list of the report. A test passes if the status contains `pass`, and fails if the
 * status contains `fail`.
 */
import type { Case, Judged } from './judged.ts';
import { isResolved, listsOf } from './testsstatus.ts';

export function live({ read, instance: { FAIL_TO_PASS, PASS_TO_PASS } }: Case): Judged {
  const has = (test: string, word: string): boolean =>
    read.outcomes.get(test)?.toLowerCase().includes(word) === true;
  const passes = (test: string): boolean => has(test, 'pass');
  const tests = listsOf(FAIL_TO_PASS, PASS_TO_PASS, passes, (test) => has(test, 'fail'));
  return { resolved: FAIL_TO_PASS.every(passes) && isResolved(tests), tests };
}
