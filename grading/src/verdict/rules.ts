/** Makes a verdict of the outcomes, by the rule of the plan. Each rule is one function of {@link RULES}. */
import type { Instance, InstancePlan } from '@swefarm/shared';
import { isRuleKnown, type RuleName } from '../plan/supported.ts';
import type { Evidence, Outcomes } from './evidence.ts';
import { isResolved, type ListRule, type TestsStatus, testsStatus } from './testsstatus.ts';

export type Judged = {
  resolved: boolean;
  /** Null where the rule knows no lists of tests. */
  tests: TestsStatus | null;
};

type Case = {
  read: Extract<Outcomes, { readable: true }>;
  evidence: Evidence;
  verdict: InstancePlan['verdict'];
  instance: Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>;
};
type Rule = (judged: Case) => Judged;

const byLists =
  (rule: ListRule): Rule =>
  ({ read, instance }) => {
    const tests = testsStatus(rule, read.outcomes, instance);
    return { resolved: isResolved(tests), tests };
  };

const RULES: Record<RuleName, Rule> = {
  swebench: byLists('swebench'),
  'swebench-5': byLists('swebench-5'),
  fail_only: byLists('fail_only'),
};

/** @throws Error for a rule that `isRuleKnown` denies */
export function judge(judged: Case): Judged {
  const { rule } = judged.verdict;
  if (!isRuleKnown(rule)) throw new Error(`no verdict by the rule "${rule}"`);
  return RULES[rule](judged);
}
