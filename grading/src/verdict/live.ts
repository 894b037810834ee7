/**
 * SWE-bench-Live (70ec57e): no test of either list failed, and every test of FAIL_TO_PASS passed. A missing or skipped test of
 * PASS_TO_PASS is accepted and in neither list of the report. A status that contains `pass` passes, one that contains `fail` fails.
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
