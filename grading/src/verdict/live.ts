/**
 * SWE-bench-Live (70ec57e): no test of either list failed, and every FAIL_TO_PASS passed. A PASS_TO_PASS test that is missing or skipped
 * is fine, and stands in neither list of the report. A status passes that contains `pass`, and fails that contains `fail`, in any case.
 */
import { type Case, type Judged, listsOf } from './judged.ts';
import type { TestsStatus } from './testsstatus.ts';

export function live({ read, instance }: Case): Judged {
  const says = (test: string, word: string): boolean =>
    read.outcomes.get(test)?.toLowerCase().includes(word) === true;
  const sort = (names: readonly string[]): TestsStatus['FAIL_TO_PASS'] => ({
    success: names.filter((name) => says(name, 'pass')),
    failure: names.filter((name) => says(name, 'fail')),
  });
  const gain = sort(instance.FAIL_TO_PASS);
  const keep = sort(instance.PASS_TO_PASS);
  const gained = gain.success.length === instance.FAIL_TO_PASS.length;
  return {
    resolved: gained && gain.failure.length === 0 && keep.failure.length === 0,
    tests: listsOf(gain, keep),
  };
}
