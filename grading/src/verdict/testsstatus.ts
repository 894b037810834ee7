/** Sorts tests into lists of successes and failures by the rules of the harnesses. */
import type { Report } from '@swefarm/shared';

export type TestsStatus = NonNullable<Report['tests_status']>;
type Bucket = TestsStatus['FAIL_TO_PASS'];
/** Adds a test to the successes or the failures of a bucket, or to neither. */
type Rule = (test: string, outcomes: ReadonlyMap<string, string>, bucket: Bucket) => void;

const PASSING = new Set(['PASSED', 'XFAIL']);
const FAILING = new Set(['FAILED', 'ERROR']);

/** Rule of swebench 4.1.0 and SWE-Gym: a missing test fails, and a skipped test is in neither list. */
const passAndFail: Rule = (test, outcomes, bucket) => {
  const status = outcomes.get(test);
  if (status !== undefined && PASSING.has(status)) bucket.success.push(test);
  else if (status === undefined || FAILING.has(status)) bucket.failure.push(test);
};

/** Rule for logs that list only failures: a test that did not fail is a success. */
const failOnly: Rule = (test, outcomes, bucket) => {
  (outcomes.get(test) === 'FAILED' ? bucket.failure : bucket.success).push(test);
};

/** Rule of swebench 5.0.2: a skipped test is a failure in FAIL_TO_PASS and a success in PASS_TO_PASS. */
const latest =
  (findByPrefix: (test: string) => string | undefined, skipped: 'success' | 'failure'): Rule =>
  (test, outcomes, bucket) => {
    const status = outcomes.get(test) ?? findByPrefix(test);
    if (status !== undefined && PASSING.has(status)) bucket.success.push(test);
    else if (status === 'SKIPPED') bucket[skipped].push(test);
    else if (status === undefined || FAILING.has(status)) bucket.failure.push(test);
  };

/** Verdict rules of SWE-bench and SWE-Gym. */
export type ListRule = 'swebench' | 'swebench-5' | 'fail_only';

export function testsStatus(
  rule: ListRule,
  outcomes: ReadonlyMap<string, string>,
  tests: { FAIL_TO_PASS: readonly string[]; PASS_TO_PASS: readonly string[] },
): TestsStatus {
  const findByPrefix = prefixSearch(outcomes);
  const ruleFor = (skipped: 'success' | 'failure'): Rule => {
    if (rule === 'fail_only') return failOnly;
    return rule === 'swebench-5' ? latest(findByPrefix, skipped) : passAndFail;
  };
  const sort = (names: readonly string[], rule: Rule): Bucket => {
    const bucket: Bucket = { success: [], failure: [] };
    for (const name of names) rule(name, outcomes, bucket);
    return bucket;
  };
  return statusOf(sort(tests.FAIL_TO_PASS, ruleFor('failure')), sort(tests.PASS_TO_PASS, ruleFor('success')));
}

const statusOf = (failToPass: Bucket, passToPass: Bucket): TestsStatus => ({
  FAIL_TO_PASS: failToPass,
  PASS_TO_PASS: passToPass,
  FAIL_TO_FAIL: { success: [], failure: [] },
  PASS_TO_FAIL: { success: [], failure: [] },
});

/** Splits both lists of tests by success. By default, a test that does not succeed is a failure. */
export function listsOf(
  failToPass: readonly string[],
  passToPass: readonly string[],
  succeeds: (test: string) => boolean,
  fails: (test: string) => boolean = (test) => !succeeds(test),
): TestsStatus {
  const split = (names: readonly string[]): Bucket => ({
    success: names.filter(succeeds),
    failure: names.filter(fails),
  });
  return statusOf(split(failToPass), split(passToPass));
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
