import { expect, test } from 'vitest';
import { instance } from '../instance.fixture.ts';
import { planEvaluation } from '../plan/plan.ts';
import { addCanaryTest } from './canarytest.ts';

const NAME = 'test_5up3r';
const trapOf = (row = instance(), grader?: 'swegym') => addCanaryTest(planEvaluation(row, grader), row, NAME);
const added = (script: string, line: RegExp): string[] => {
  const lines = script.split('\n');
  const at = lines.findIndex((one) => one.includes(NAME));
  expect(lines[at]).toMatch(line);
  return [lines[at - 1] ?? '', lines[at + 1] ?? ''];
};

test('a test that fails joins those that count, when the test patch is there and no test has run', () => {
  const around = added(trapOf()?.plan.script ?? '', /^printf .* >>\/testbed\/tests\/test_crate\.py$/);
  expect(around).toEqual(['EOF_114329324912', ": '>>>>> Start Test Output'"]);
});

test('where the script has no markers it stands before the tests too', () => {
  const [before, after] = added(trapOf(instance(), 'swegym')?.plan.script ?? '', /^printf/);
  expect(before).toBe('EOF_114329324912');
  expect(after).toMatch(/^pytest -rA tests\/test_crate\.py/);
});

test('it is seen to fail, or it is not', () => {
  const fails = (status_map: Record<string, string> | null) => trapOf()?.fails({ status_map });
  expect(fails({ [`tests/test_crate.py::${NAME}`]: 'FAILED' })).toBe(true);
  expect(fails({ [`tests/test_crate.py::${NAME}`]: 'PASSED' })).toBe(false);
  expect(fails({ 'tests/test_crate.py::test_holds': 'FAILED' })).toBe(false);
  expect(fails(null)).toBe(false);
});

test.each([
  ['tests that pytest does not run', { log_parser: 'django' }],
  ['tests without a file', { FAIL_TO_PASS: ['test_x (a.B)'], PASS_TO_PASS: [] }],
  ['a script of their own without a place for it', { eval_script: 'pytest -rA' }],
])('none for %s', (_name, change) => {
  expect(trapOf(instance(change))).toBeNull();
});
