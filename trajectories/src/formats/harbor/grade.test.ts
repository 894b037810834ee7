/** Compares the program of a task with the farm's own grading: statuses and verdicts of the logs in `grading/fixtures`. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type EvaluationFacts, gradeEvaluation } from '@swefarm/grading';
import { Instance, InstancePlan } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { COVERED_PARSERS } from './covered.ts';

const FIXTURES = new URL('../../../../grading/fixtures/', import.meta.url);
const TASK = fileURLToPath(new URL('./task', import.meta.url));

const LOGS = readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.log'))
  .map((name) => readFileSync(new URL(name, FIXTURES), 'utf8'));
/** Logs with lines of one field, torn lines, colours, markers inside test output, and names that the readers treat specially. */
const HOSTILE = [
  '',
  'FAILED\nPASSED a\n',
  'a PASSED\nFAILED [ 50%] b - c - d\n\x1b[32mPASSED\x1b[0m c\nPASSED x y z\nSKIPPED [2] a.py:3: why\n',
  'FAIL:\nERROR: x (y)\na (b) ... \nnoise\nok\nb ... Testing against Django installed in /x\nmore silenced).\nok\n',
  '>>>>> Tests Timed Out\nPASSED a\n',
  "PASSED a\n+ : '>>>>> End Test Output'\nPASSED b\n+ : '>>>>> Start Test Output'\nPASSED c\n",
  'short test summary info\nPASSED t.py::A::b\nFAILED t.py::c - x\nPASSED nothing\nshort test summary info\nPASSED t.py::d\n',
  '____ a/b.py:test_c ____\ntest_c ok\ntest_d F [FAIL]\ntest_e E\n',
  'PASSED t.py::a[/long/path/x]\nPASSED t.py::b[//x/y]\nPASSED t.py::c[d e]\nFAILEDLY not a word\nXFAIL t.py::f\n',
];

type Case = { dialect: string; parser: string; rule: string; log: string };
const RULES: Readonly<Record<string, string>> = {
  '5.0.2': 'swebench-5',
  'r2e-gym': 'subset',
  'swe-lego': 'subset',
  'swe-bench-live': 'live',
};

/** Returns the log as the script of the dialect's harness prints it. */
function printed(dialect: string, log: string): string {
  if (dialect === 'swegym') return `Applied patch t.py cleanly.\n${log}`;
  if (!['4.1.0', '5.0.2', 'swe-rebench', 'swesmith'].includes(dialect)) return log;
  return `noise\n+ : '>>>>> Start Test Output'\n${log}\n+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: 1\n`;
}

const CASES: Case[] = Object.entries(COVERED_PARSERS).flatMap(([dialect, parsers]) =>
  parsers.flatMap((parser) =>
    [...LOGS, ...HOSTILE].map((log) => ({
      dialect,
      parser,
      rule: RULES[dialect] ?? 'swebench',
      log: printed(dialect, log),
    })),
  ),
);

type Tests = Pick<Instance, 'FAIL_TO_PASS' | 'PASS_TO_PASS'>;
type Graded = { resolved: boolean; outcomes?: Record<string, string> };

function ours({ dialect, parser, rule, log }: Case, tests: Tests, expected?: Record<string, string>) {
  const verdict = { rule, ...(expected && { expected }) };
  return graded(log, { outcomes: { from: 'log', dialect, parser }, verdict }, tests);
}

function graded(log: string, rules: object, { FAIL_TO_PASS, PASS_TO_PASS }: Tests) {
  const plan = InstancePlan.parse({ grader: 'x', script: '', ...rules });
  const instance = Instance.parse({
    ...{
      instance_id: 'a__b-1',
      repo: 'a/b',
      base_commit: 'f00',
      problem_statement: '',
      image: 'i',
      family: 'custom',
    },
    ...{ FAIL_TO_PASS, PASS_TO_PASS },
  });
  const facts: EvaluationFacts = {
    ...{ applied_with: null, log, timed_out: false, timeout_seconds: 9, exit_code: 0 },
    ...{ patch_state: 'applied' as const, sandbox_killed: false, image_digest: null },
  };
  return gradeEvaluation(instance, plan, facts, null);
}

/** Grades all cases in one run of Python, because one run for each case would take minutes. */
function theirs(tasks: readonly { task: object; log: string }[]): Graded[] {
  const program = `import sys, json; sys.path.insert(0, ${JSON.stringify(TASK)}); sys.dont_write_bytecode = True; import grade
json.dump([grade.grade(one["task"], one["log"].replace("\\r\\n", "\\n").replace("\\r", "\\n"), 0) for one in json.load(sys.stdin)], sys.stdout)`;
  const input = JSON.stringify(tasks);
  return JSON.parse(execFileSync('python3', ['-c', program], { input, maxBuffer: 1e9, encoding: 'utf8' }));
}

/** Returns choices of FAIL_TO_PASS and PASS_TO_PASS from the statuses of a log. */
function choices(statuses: Record<string, string>): Tests[] {
  const names = Object.keys(statuses).filter((name) => name !== '');
  const passed = names.filter((name) => /^pass|^XFAIL/i.test(statuses[name] ?? ''));
  const [skipped] = names.filter((name) => /^skip/i.test(statuses[name] ?? ''));
  const [failed] = names.filter((name) => /^(fail|error)/i.test(statuses[name] ?? ''));
  const [first = 'missing', ...rest] = passed;
  const cut = names.find((name) => name.includes('['));
  return [
    { FAIL_TO_PASS: [first], PASS_TO_PASS: rest },
    ...[skipped, failed, 'missing', cut?.slice(0, cut.indexOf('[') + 2)].flatMap((one) =>
      one === undefined
        ? []
        : [
            { FAIL_TO_PASS: [first, one], PASS_TO_PASS: rest },
            { FAIL_TO_PASS: [first], PASS_TO_PASS: [...rest, one] },
          ],
    ),
  ];
}

describe('the program of a task', () => {
  test('reads the same statuses and gives the same verdicts as the farm', () => {
    const asked = CASES.flatMap((one) => {
      const { status_map } = ours(one, { FAIL_TO_PASS: ['missing'], PASS_TO_PASS: [] });
      return choices(status_map ?? {}).map((tests) => {
        const { resolved, status_map: statuses, unreadable } = ours(one, tests);
        const { dialect, parser, rule, log } = one;
        return {
          task: { dialect, parser, rule, ...tests },
          log,
          wanted: { resolved, statuses: unreadable ? null : statuses },
        };
      });
    });
    const results = theirs(asked.map(({ task, log }) => ({ task, log })));
    expect(asked.some(({ wanted }) => wanted.resolved)).toBe(true);
    const wrong = asked.flatMap(({ task, log, wanted }, at) => {
      const { resolved, outcomes = null } = results[at] ?? { resolved: null };
      const equal =
        resolved === wanted.resolved &&
        JSON.stringify(sorted(outcomes)) === JSON.stringify(sorted(wanted.statuses));
      return equal ? [] : [{ task, log: log.slice(0, 400), resolved, outcomes, wanted }];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  test('does not resolve an instance without tests by a log without tests', () => {
    const [dialect, parser, rule] = ['5.0.2', 'pytest', 'swebench-5'];
    const log = printed(dialect, 'nothing').replace('Code: 1', 'Code: 0');
    const tests = { FAIL_TO_PASS: [], PASS_TO_PASS: [] };
    expect(ours({ dialect, parser, rule, log }, tests).resolved).toBe(false);
    expect(theirs([{ task: { dialect, parser, rule, ...tests }, log }])).toMatchObject([{ resolved: false }]);
  });

  test('the rule expected compares only the number of tests without a name', () => {
    const log = '=== short test summary info ===\nPASSED t.py::A::b\nFAILED  - x\n';
    const one = { dialect: 'r2e-gym', parser: 'r2e', rule: 'expected', log };
    const tests = { FAIL_TO_PASS: [], PASS_TO_PASS: [] };
    const cases = [{ 'A.b': 'PASSED', '': 'PASSED' }, { 'A.b': 'PASSED' }, { 'A.b': 'PASSED', c: 'PASSED' }];
    const results = theirs(cases.map((expected) => ({ task: { ...one, ...tests, expected }, log })));
    const wanted = cases.map((expected) => ours(one, tests, expected));
    expect(results.map(({ resolved }) => resolved)).toEqual(wanted.map(({ resolved }) => resolved));
  });

  test('the rule expected compares all statuses', () => {
    const log = '=== short test summary info ===\nPASSED t.py::A::b\nFAILED t.py::c - x\n';
    const one = { dialect: 'r2e-gym', parser: 'r2e', rule: 'expected', log };
    const tests = { FAIL_TO_PASS: [], PASS_TO_PASS: [] };
    const cases = [
      { 'A.b': 'PASSED', c: 'FAILED' },
      { 'A.b': 'PASSED' },
      { 'A.b': 'PASSED', c: 'PASSED' },
      { 'A.b - x': 'PASSED', '\x1b[1mc': 'FAILED' },
    ];
    const results = theirs(cases.map((expected) => ({ task: { ...one, ...tests, expected }, log })));
    expect(results.map(({ resolved }) => resolved)).toEqual(
      cases.map((expected) => ours(one, tests, expected).resolved),
    );
    expect(results.map(({ resolved }) => resolved)).toEqual([true, false, false, true]);
  });

  test.each([
    ['CODE=(\\d+)', 'CODE=0\nCODE=1\n', false],
    ['CODE=(\\d+)', 'CODE=1\nCODE=0\n', true],
    ['CODE=(\\d+)', 'CODE=0\nCODE=-1\n', false],
    ['CODE=(\\d+)', 'CODE=0\nCODE=x\n', true],
    ['CODE=(\\d+)', 'CODE=0000000000', false],
    ['CODE (-?[0-9]+)!', 'CODE 5\nCODE 0!\nCODE 7.', true],
    ['exit\\.code\\[(\\d+)\\]', 'exit.code[0] exitxcode[1]', true],
    ['CODE=(\\d+)', 'nothing\n', false],
  ])('finds the last exit code by the pattern %j in the log %j', (pattern, log, resolved) => {
    const task = { rule: 'exit_code', pattern, FAIL_TO_PASS: [], PASS_TO_PASS: [] };
    const plan = { outcomes: { from: 'exit_code', pattern }, verdict: { rule: 'exit_code' } };
    expect(graded(log, plan, task).resolved).toBe(resolved);
    expect(theirs([{ task, log }])).toMatchObject([{ resolved }]);
  });
});

/** Returns sorted entries. An unreadable log counts as an empty map, because no test has a status in either case. */
const sorted = (statuses: Record<string, string> | null): [string, string][] =>
  Object.entries(statuses ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
