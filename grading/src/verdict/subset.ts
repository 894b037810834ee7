/** The rules that compare the tests of both lists with the tests that passed. Skipped tests and XFAIL do not pass. */
import type { Case, Judged } from './judged.ts';
import { isResolved, listsOf } from './testsstatus.ts';

/**
 * Every test of both lists must pass; other tests are ignored. This is the rule of SWE-bench Pro (ca10a60), SWE-Lego in verifiers
 * (a60a606), and SWE-rebench V2 in NeMo Gym and verifiers.
 */
export function subset({
  read,
  instance: { FAIL_TO_PASS, PASS_TO_PASS },
}: Case): Judged & { resolved: boolean } {
  const nameOf = read.nameOf ?? ((name: string): string => name);
  const tests = listsOf(FAIL_TO_PASS, PASS_TO_PASS, (test) => read.outcomes.get(nameOf(test)) === 'PASSED');
  return { resolved: isResolved(tests), tests };
}

/** The tests that passed must be exactly the tests of both lists (SWE-rebench V2's own rule, c71902a). */
export function equal(judged: Case): Judged {
  const { resolved, tests } = subset(judged);
  const { FAIL_TO_PASS, PASS_TO_PASS } = judged.instance;
  // The harness compares sorted lists, so two names that the parser maps to one name still count as two tests.
  const wanted = FAIL_TO_PASS.length + PASS_TO_PASS.length;
  const passed = [...judged.read.outcomes.values()].filter((status) => status === 'PASSED').length;
  return { resolved: resolved && passed === wanted, tests };
}
