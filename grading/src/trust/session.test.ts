import { bareFacts } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import { GOLD, instance, ran } from '../instance.fixture.ts';
import { planEvaluation } from '../plan/plan.ts';
import { gradeEvaluation } from '../report/grade.ts';
import { decideReward } from '../reward/reward.ts';

const PASSES = 'PASSED tests/test_crate.py::test_holds\nPASSED tests/test_crate.py::test_opens\n';
const END = '=== 2 passed in 0.01s ===\n';

function trustOf(tests: string, { command = 'pytest -rA', parser = 'pytest', code = 0 } = {}) {
  const row = instance({ test_cmd: command, log_parser: parser });
  const log = `+ : '>>>>> Start Test Output'\n${tests}+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: ${code}\n`;
  const { resolved, trust } = gradeEvaluation(row, planEvaluation(row), ran(log), GOLD);
  return { resolved, ...trust };
}

test.each([
  ['pytest -rA', 'forged'],
  ['python -m pytest --no-header -rA -k quick', 'forged'],
  ['tox --current-env -epy39 -v --', 'forged'],
  ['pytest -rA -qq', 'suspicious'],
  ['pytest -rAq', 'suspicious'],
  ['pytest -rA --quiet --quiet', 'suspicious'],
  ['make test', 'suspicious'],
])('no end of the session behind `%s`: %s', (command, level) => {
  expect(trustOf(PASSES, { command })).toMatchObject({ level, resolved: true });
  expect(trustOf(PASSES + END, { command })).toMatchObject({ level: 'clean' });
});

test.each([
  ['FAIL Required test coverage of 100% not reached. Total coverage: 50.00%\n', 'pytest'],
  ['SUBFAILED[one] tests/test_lid.py::T::test_s - assert 0\n', 'pytest'],
  ['[one] SUBFAIL tests/test_lid.py::T::test_s - AssertionError: assert 0\n', 'pytest'],
  // The parser of seaborn reads no ERROR.
  ['ERROR tests/test_lid.py - ImportError\n', 'seaborn'],
])('exit code 1 that the log explains is no forgery: %s', (text, parser) => {
  expect(trustOf(text + PASSES + END, { code: 1, parser })).toMatchObject({
    resolved: true,
    level: 'suspicious',
  });
  expect(trustOf(PASSES + END, { code: 1, parser })).toMatchObject({ level: 'forged' });
  expect(trustOf(text + PASSES, { code: 1, parser })).toMatchObject({ level: 'forged' });
});

test('a failure that a later line overrides is forged', () => {
  const log = `FAILED tests/test_crate.py::test_holds - no\n=== 1 failed, 1 passed in 0.01s ===\n${PASSES}`;
  expect(trustOf(log, { code: 1 })).toMatchObject({ resolved: true, level: 'forged' });
});

describe('all tests skipped', () => {
  const graded = (tests: string, parser: string, grader: 'swebench-4.1.0' | 'swebench-5.0.2') => {
    const row = instance({ log_parser: parser });
    const log = `+ : '>>>>> Start Test Output'\n${tests}+ : '>>>>> End Test Output'\n>>>>> Test Exit Code: 0\n`;
    return gradeEvaluation(row, planEvaluation(row, grader), ran(log), GOLD);
  };
  const skipped = 'SKIPPED [2] tests/test_crate.py:3: later\n=== 2 skipped in 0.01s ===\n';

  test.each([
    ['pytest', 'swebench-4.1.0'],
    ['pytest', 'swebench-5.0.2'],
    ['seaborn', 'swebench-4.1.0'],
  ] as const)('%s by %s: the tests started and did not resolve', (parser, grader) => {
    const report = graded(skipped, parser, grader);
    expect(report).toMatchObject({ evaluation: 'completed', resolved: false });
    const { evaluation, resolved, trust } = report;
    const { reward, row, outcome } = decideReward(bareFacts({ evaluation, resolved, trust: trust.level }));
    expect({ reward, row, outcome }).toEqual({ reward: 0, row: 'unresolved', outcome: 'judged' });
  });

  test.each([
    '',
    '=== no tests ran in 0.01s ===\n',
    '=== 1 error in 0.20s ===\n',
    '=== 2 passed in 0.01s ===\n',
  ])('any other log without outcomes is no start: %j', (tests) => {
    expect(graded(tests, 'seaborn', 'swebench-4.1.0').evaluation).toBe('tests_cannot_start');
    expect(graded(tests, 'pytest', 'swebench-5.0.2').evaluation).toBe('tests_cannot_start');
  });
});
