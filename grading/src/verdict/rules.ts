/** Makes a verdict from the outcomes by the rule of the plan. Each rule has one function. */
import { classes } from './classes.ts';
import { exitCode } from './exitcode.ts';
import { expected } from './expected.ts';
import type { Case, Judged, Rule } from './judged.ts';
import { junitIds } from './junitids.ts';
import { live } from './live.ts';
import { equal, subset } from './subset.ts';
import { isResolved, type ListRule, testsStatus } from './testsstatus.ts';

const byLists =
  (rule: ListRule): Rule =>
  ({ read, instance }) => {
    const tests = testsStatus(rule, read.outcomes, instance);
    return { resolved: isResolved(tests), tests };
  };

const RULES: Record<Case['verdict']['rule'], Rule> = {
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

export const judge = (judged: Case): Judged => RULES[judged.verdict.rule](judged);
