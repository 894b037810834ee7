/** The two lists of tests that most families have. */
import type { Instance } from '@swefarm/shared';
import type { FieldReader } from '../fields/fields.ts';

/** Both lists, of which one may be empty. `failToPass` and `passToPass`: the columns' names. */
export function readTests(
  read: FieldReader,
  failToPass = 'FAIL_TO_PASS',
  passToPass = 'PASS_TO_PASS',
): Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'> {
  const tests = { FAIL_TO_PASS: read.tests(failToPass), PASS_TO_PASS: read.tests(passToPass) };
  if (
    tests.FAIL_TO_PASS.length + tests.PASS_TO_PASS.length === 0 &&
    !read.complainedOf(failToPass, passToPass)
  ) {
    read.refuse(
      'no tests',
      failToPass,
      'at least one test id',
      [],
      'leave out the row: without tests every patch would count as resolved',
    );
  }
  return tests;
}
