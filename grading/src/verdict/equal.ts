/** The tests that passed are exactly those of both lists: one more that passes is unresolved (SWE-rebench V2's own rule, c71902a). */
import type { Case, Judged } from './judged.ts';
import { passedLists } from './subset.ts';
import { isResolved } from './testsstatus.ts';

export function equal(judged: Case): Judged {
  const { read, instance } = judged;
  // Two names that the parser folds into one are two entries of the harness's sorted list.
  const wanted = [...instance.FAIL_TO_PASS, ...instance.PASS_TO_PASS];
  let passed = 0;
  for (const status of read.outcomes.values()) if (status === 'PASSED') passed++;
  const tests = passedLists(judged);
  return { resolved: isResolved(tests) && passed === wanted.length, tests };
}
