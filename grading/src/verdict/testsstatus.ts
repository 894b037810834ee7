/** Sorts the outcomes of tests into success and failure lists, by the rule of each harness. */
import type { Report } from '@swefarm/shared';

export type TestsStatus = NonNullable<Report['tests_status']>;
type Bucket = TestsStatus['FAIL_TO_PASS'];
/** Adds a test to a bucket, or to neither side. */
type Rule = (test: string, outcomes: ReadonlyMap<string, string>, bucket: Bucket) => void;

const PASSING = new Set(['PASSED', 'XFAIL']);
const FAILING = new Set(['FAILED', 'ERROR']);

/** 4.1.0 and the fork: a missing test failed; a skipped one is in neither list, so the ratio does not count it. */
const passAndFail: Rule = (test, outcomes, bucket) => {
  const status = outcomes.get(test);
  if (status !== undefined && PASSING.has(status)) bucket.success.push(test);
  else if (status === undefined || FAILING.has(status)) bucket.failure.push(test);
};

/** For logs that list failures only. */
const failOnly: Rule = (test, outcomes, bucket) => {
  (outcomes.get(test) === 'FAILED' ? bucket.failure : bucket.success).push(test);
};

/** 5.0.2: a skipped test does not resolve, but is no regression either. */
const latest =
  (index: PrefixIndex, skipped: 'success' | 'failure'): Rule =>
  (test, outcomes, bucket) => {
    const status = outcomes.get(test) ?? index.find(test);
    if (status !== undefined && PASSING.has(status)) bucket.success.push(test);
    else if (status === 'SKIPPED') bucket[skipped].push(test);
    else if (status === undefined || FAILING.has(status)) bucket.failure.push(test);
  };

/** How the harnesses of SWE-bench and SWE-Gym count one test. */
export type ListRule = 'swebench' | 'swebench-5' | 'fail_only';

/** Grades both lists of tests by the harness's rule. */
export function testsStatus(
  rule: ListRule,
  outcomes: ReadonlyMap<string, string>,
  tests: { FAIL_TO_PASS: readonly string[]; PASS_TO_PASS: readonly string[] },
): TestsStatus {
  const index = prefixIndex(outcomes);
  const rules =
    rule === 'fail_only'
      ? { gain: failOnly, keep: failOnly }
      : rule === 'swebench-5'
        ? { gain: latest(index, 'failure'), keep: latest(index, 'success') }
        : { gain: passAndFail, keep: passAndFail };
  const sort = (names: readonly string[], rule: Rule): Bucket => {
    const bucket: Bucket = { success: [], failure: [] };
    for (const name of names) rule(name, outcomes, bucket);
    return bucket;
  };
  return {
    FAIL_TO_PASS: sort(tests.FAIL_TO_PASS, rules.gain),
    PASS_TO_PASS: sort(tests.PASS_TO_PASS, rules.keep),
    FAIL_TO_FAIL: { success: [], failure: [] },
    PASS_TO_FAIL: { success: [], failure: [] },
  };
}

/** Resolved is what the harness calls FULL: no failure in either list (an empty list counts as passed). */
export const isResolved = (status: TestsStatus): boolean =>
  status.FAIL_TO_PASS.failure.length === 0 && status.PASS_TO_PASS.failure.length === 0;

type PrefixIndex = { find: (test: string) => string | undefined };

/**
 * 5.0.2 finds ids that the dataset cut inside their brackets by prefix, if all tests with that prefix pass or none does.
 * Names are sorted once, because a hostile log may hold very many.
 */
function prefixIndex(outcomes: ReadonlyMap<string, string>): PrefixIndex {
  let sorted: string[] | null = null;
  let order: Map<string, number> | null = null;
  return {
    find(test) {
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
    },
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
