/** Sorts tests into lists of successes and failures by the rules of the harnesses. */
import type { Report } from '@swefarm/shared';

export type TestsStatus = NonNullable<Report['tests_status']>;
type Bucket = TestsStatus['FAIL_TO_PASS'];
type Lists = { FAIL_TO_PASS: readonly string[]; PASS_TO_PASS: readonly string[] };
type Sort = 'success' | 'failure' | 'neither';

const PASSING = new Set(['PASSED', 'XFAIL']);
const FAILING = new Set(['FAILED', 'ERROR']);

/** Verdict rules of SWE-bench and SWE-Gym. */
export type ListRule = 'swebench' | 'swebench-5' | 'fail_only';

/**
 * Sorts both lists of tests. A missing test fails. A skipped test is in neither list; in swebench 5.0.2, a skipped test is a failure in
 * FAIL_TO_PASS and a success in PASS_TO_PASS. `fail_only` is for logs that list only failures: a test that did not fail is a success.
 */
export function testsStatus(
  rule: ListRule,
  outcomes: ReadonlyMap<string, string>,
  { FAIL_TO_PASS, PASS_TO_PASS }: Lists,
): TestsStatus {
  const isLatest = rule === 'swebench-5';
  const findByPrefix = prefixSearch(outcomes);
  const sort = (test: string, skipped: Sort): Sort => {
    const status = outcomes.get(test) ?? (isLatest ? findByPrefix(test) : undefined);
    if (rule === 'fail_only') return status === 'FAILED' ? 'failure' : 'success';
    if (status === undefined || FAILING.has(status)) return 'failure';
    if (PASSING.has(status)) return 'success';
    return isLatest && status === 'SKIPPED' ? skipped : 'neither';
  };
  const split = (names: readonly string[], skipped: Sort): Bucket => {
    const { success = [], failure = [] } = Object.groupBy(names, (test) => sort(test, skipped));
    return { success, failure };
  };
  return statusOf(split(FAIL_TO_PASS, 'failure'), split(PASS_TO_PASS, 'success'));
}

const statusOf = (failToPass: Bucket, passToPass: Bucket): TestsStatus => ({
  FAIL_TO_PASS: failToPass,
  PASS_TO_PASS: passToPass,
  FAIL_TO_FAIL: { success: [], failure: [] },
  PASS_TO_FAIL: { success: [], failure: [] },
});

/** Splits both lists of tests by success. By default, a test that does not succeed is a failure. */
export function listsOf(
  { FAIL_TO_PASS, PASS_TO_PASS }: Lists,
  succeeds: (test: string) => boolean,
  fails: (test: string) => boolean = (test) => !succeeds(test),
): TestsStatus {
  const split = (names: readonly string[]): Bucket => ({
    success: names.filter(succeeds),
    failure: names.filter(fails),
  });
  return statusOf(split(FAIL_TO_PASS), split(PASS_TO_PASS));
}

/** Whether neither list has a failure (`FULL` in the harness). */
export const isResolved = (status: TestsStatus): boolean =>
  status.FAIL_TO_PASS.failure.length === 0 && status.PASS_TO_PASS.failure.length === 0;

/**
 * Finds the status of an id that the dataset cut inside the brackets, as swebench 5.0.2 does: by prefix, if all tests with the prefix
 * pass or none does. The names are sorted only once, because a hostile log may contain very many names.
 */
function prefixSearch(outcomes: ReadonlyMap<string, string>): (test: string) => string | undefined {
  let sorted: string[] | null = null;
  let order: Map<string, number> | null = null;
  return (test) => {
    if (count(test, '[') <= count(test, ']')) return undefined;
    sorted ??= [...outcomes.keys()].sort();
    order ??= new Map([...outcomes.keys()].map((name, at) => [name, at]));
    let first: string | undefined;
    let passing: boolean | undefined;
    for (let at = lowerBound(sorted, test); sorted[at]?.startsWith(test); at++) {
      const name = sorted[at] as string;
      const passes = PASSING.has(outcomes.get(name) ?? '');
      if (passing !== undefined && passing !== passes) return undefined;
      passing = passes;
      if (first === undefined || (order.get(name) ?? 0) < (order.get(first) ?? 0)) first = name;
    }
    return first === undefined ? undefined : outcomes.get(first);
  };
}

const count = (text: string, char: string): number => text.split(char).length - 1;

function lowerBound(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
