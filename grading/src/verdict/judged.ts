/** What a rule is: outcomes in, verdict out. */
import type { Instance, InstancePlan } from '@swefarm/shared';
import type { Evidence, Outcomes } from './evidence.ts';
import type { TestsStatus } from './testsstatus.ts';

export type Judged = {
  /** Null where the grader gives a number and no verdict. */
  resolved: boolean | null;
  /** Null where the rule knows no lists of tests. */
  tests: TestsStatus | null;
};

export type Case = {
  read: Extract<Outcomes, { readable: true }>;
  evidence: Evidence;
  verdict: InstancePlan['verdict'];
  instance: Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>;
};

/** A pure function of the case. */
export type Rule = (judged: Case) => Judged;

/** The lists of a report, of two buckets. */
export const listsOf = (
  gain: TestsStatus['FAIL_TO_PASS'],
  keep: TestsStatus['PASS_TO_PASS'],
): TestsStatus => ({
  FAIL_TO_PASS: gain,
  PASS_TO_PASS: keep,
  FAIL_TO_FAIL: { success: [], failure: [] },
  PASS_TO_FAIL: { success: [], failure: [] },
});

/** Sorts both lists of an instance; a test that does not hold is a failure. */
export function listsBy(instance: Case['instance'], holds: (test: string) => boolean): TestsStatus {
  const sort = (names: readonly string[]): TestsStatus['FAIL_TO_PASS'] => ({
    success: names.filter(holds),
    failure: names.filter((name) => !holds(name)),
  });
  return listsOf(sort(instance.FAIL_TO_PASS), sort(instance.PASS_TO_PASS));
}
