/** Makes a verdict of the outcomes, by the rule of the plan. Each rule is one function of {@link RULES}. */
import { isRuleKnown, type RuleName } from '../plan/supported.ts';
import { classes } from './classes.ts';
import { equal } from './equal.ts';
import { exitCode } from './exitcode.ts';
import { expected } from './expected.ts';
import type { Case, Judged, Rule } from './judged.ts';
import { junitIds } from './junitids.ts';
import { live } from './live.ts';
import { subset } from './subset.ts';
import { isResolved, type ListRule, testsStatus } from './testsstatus.ts';

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
  subset,
  equal,
  live,
  expected,
  classes,
  junit_ids: junitIds,
  exit_code: exitCode,
  reward: () => ({ resolved: null, tests: null }),
};

/** @throws Error for a rule that `isRuleKnown` denies */
export function judge(judged: Case): Judged {
  const { rule } = judged.verdict;
  if (!isRuleKnown(rule)) throw new Error(`no verdict by the rule "${rule}"`);
  return RULES[rule](judged);
}
