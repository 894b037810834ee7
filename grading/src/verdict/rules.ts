/** Makes a verdict from the outcomes by the rule of the plan. Each rule has one function. */
import { before } from '../text/pythontext.ts';
import { classes } from './classes.ts';
import type { Case, Judged, Rule } from './judged.ts';
import { junitIds } from './junitids.ts';
import { isResolved, type ListRule, listsOf, testsStatus } from './testsstatus.ts';

const byLists =
  (rule: ListRule): Rule =>
  ({ read, instance }) => {
    const tests = testsStatus(rule, read.outcomes, instance);
    return { resolved: isResolved(tests), tests };
  };

/**
 * Every test of both lists must pass; other tests are ignored. Skipped tests and XFAIL do not pass. This is the rule of SWE-bench Pro
 * (ca10a60), SWE-Lego in verifiers (a60a606), and SWE-rebench V2 in NeMo Gym and verifiers.
 */
const subset: Rule = ({ read, instance }) => {
  const nameOf = read.nameOf ?? ((name: string): string => name);
  const tests = listsOf(instance, (test) => read.outcomes.get(nameOf(test)) === 'PASSED');
  return { resolved: isResolved(tests), tests };
};

/** The tests that passed must be exactly the tests of both lists (SWE-rebench V2's own rule, c71902a). */
const equal: Rule = (judged) => {
  const { resolved, tests } = subset(judged);
  const { FAIL_TO_PASS, PASS_TO_PASS } = judged.instance;
  // The harness compares sorted lists, so two names that the parser maps to one name still count as two tests.
  const wanted = FAIL_TO_PASS.length + PASS_TO_PASS.length;
  const passed = [...judged.read.outcomes.values()].filter((status) => status === 'PASSED').length;
  return { resolved: resolved === true && passed === wanted, tests };
};

/**
 * Judges as SWE-bench-Live does (70ec57e): no test of either list may fail, and every test of FAIL_TO_PASS must pass. A missing or skipped
 * test of PASS_TO_PASS is accepted and appears in neither list of the report. A test passes if the status contains `pass`, and fails if the
 * status contains `fail`.
 */
const live: Rule = ({ read, instance }) => {
  const has = (test: string, word: string): boolean =>
    read.outcomes.get(test)?.toLowerCase().includes(word) === true;
  const passes = (test: string): boolean => has(test, 'pass');
  const tests = listsOf(instance, passes, (test) => has(test, 'fail'));
  return { resolved: instance.FAIL_TO_PASS.every(passes) && isResolved(tests), tests };
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOR = /\x1b\[\d+m/g;

/**
 * Judges as R2E-Gym does (agentica 353348a): the number of tests must be as expected, and each test must have the same status as with the
 * fix, including FAILED and ERROR. Colours, and all text from ` - ` on, are removed from names. Among equal names, the last test counts.
 * A test with an empty name counts in the number of tests, but its status is not compared.
 */
const expected: Rule = ({ read, verdict, instance }) => {
  const cleaned = (entries: Iterable<[string, string]>): Map<string, string> =>
    new Map(Array.from(entries, ([name, status]) => [before(name.replace(COLOR, ''), ' - '), status]));
  const wanted = cleaned(Object.entries(verdict.expected ?? {}));
  const found = cleaned(read.outcomes);
  const matches = (name: string): boolean => found.get(name) === wanted.get(name);
  const isExpected = (name: string): boolean => name === '' || (wanted.has(name) && matches(name));
  const gains = new Set(instance.FAIL_TO_PASS);
  const names = [...wanted.keys()].filter((name) => name !== '');
  const lists = {
    FAIL_TO_PASS: names.filter((name) => gains.has(name)),
    PASS_TO_PASS: names.filter((name) => !gains.has(name)),
  };
  return {
    resolved: found.size === wanted.size && [...found.keys()].every(isExpected),
    tests: listsOf(lists, matches),
  };
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
  exit_code: ({ read }) => ({ resolved: read.passed === true, tests: null }),
  reward: () => ({ resolved: null, tests: null }),
};

export const judge = (judged: Case): Judged => RULES[judged.verdict.rule](judged);
