import type { Instance, InstancePlan } from '@swefarm/shared';
import type { Evidence, Outcomes } from './evidence.ts';
import type { TestsStatus } from './testsstatus.ts';

export type Judged = {
  /** Null if the grader gives a number and no verdict. */
  resolved: boolean | null;
  /** Null if the rule has no lists of tests. */
  tests: TestsStatus | null;
};

export type Case = {
  read: Extract<Outcomes, { readable: true }>;
  evidence: Evidence;
  verdict: InstancePlan['verdict'];
  instance: Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>;
};

/** Makes the verdict of a case. A rule is a pure function. */
export type Rule = (judged: Case) => Judged;
