import type { InstancePlan } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { ownPlan, ran, instance as someInstance } from '../instance.fixture.ts';
import { gradeEvaluation } from '../report/grade.ts';
import type { Case } from './judged.ts';
import { readOutcomes } from './outcomes.ts';
import { judge } from './rules.ts';

type Verdict = InstancePlan['verdict'];
const LISTS = { FAIL_TO_PASS: ['a'], PASS_TO_PASS: ['b'] };

const judgeBy = (
  verdict: Verdict,
  outcomes: Record<string, string>,
  instance: Case['instance'] = LISTS,
  log = '',
) =>
  judge({
    read: { readable: true, outcomes: new Map(Object.entries(outcomes)), text: null },
    evidence: { log, exitCode: 0, files: new Map() },
    verdict,
    instance,
  });

describe.each([
  ['both pass', { a: 'PASSED', b: 'PASSED' }, { subset: true, equal: true, live: true }],
  ['one more passes', { a: 'PASSED', b: 'PASSED', c: 'PASSED' }, { subset: true, equal: false, live: true }],
  ['one more fails', { a: 'PASSED', b: 'PASSED', c: 'FAILED' }, { subset: true, equal: true, live: true }],
  [
    'what passed before is skipped',
    { a: 'PASSED', b: 'SKIPPED' },
    { subset: false, equal: false, live: true },
  ],
  ['what passed before is missing', { a: 'PASSED' }, { subset: false, equal: false, live: true }],
  ['what passed before fails', { a: 'PASSED', b: 'FAILED' }, { subset: false, equal: false, live: false }],
  ['the fix is expected to fail', { a: 'XFAIL', b: 'PASSED' }, { subset: false, equal: false, live: false }],
  ['the fix is missing', { b: 'PASSED' }, { subset: false, equal: false, live: false }],
  ['another word', { a: 'pass', b: 'fail' }, { subset: false, equal: false, live: false }],
  ['nothing', {}, { subset: false, equal: false, live: false }],
])('%s', (_what, outcomes, wanted) => {
  for (const [rule, resolved] of Object.entries(wanted))
    test(`is ${resolved ? '' : 'not '}resolved by ${rule}`, () => {
      expect(judgeBy({ rule: rule as Verdict['rule'] }, outcomes).resolved).toBe(resolved);
    });
});

test('the lists of the report contain each test by its status', () => {
  expect(judgeBy({ rule: 'subset' }, { a: 'FAILED', b: 'PASSED' }).tests).toMatchObject({
    FAIL_TO_PASS: { success: [], failure: ['a'] },
    PASS_TO_PASS: { success: ['b'], failure: [] },
  });
  // As upstream, a test that neither passed nor failed is in no list.
  expect(judgeBy({ rule: 'live' }, { a: 'skip', b: 'skip' }).tests).toMatchObject({
    FAIL_TO_PASS: { success: [], failure: [] },
    PASS_TO_PASS: { success: [], failure: [] },
  });
});

describe('the map that is expected', () => {
  const expected = { 'T.x': 'PASSED', 'T.y - KeyError: old': 'FAILED', '': 'ERROR' };
  const resolved = (outcomes: Record<string, string>) => judgeBy({ rule: 'expected', expected }, outcomes);

  test('is met if each test has its status, also a failure', () => {
    expect(resolved({ 'T.x': 'PASSED', 'T.y - other': 'FAILED', '': 'FAILED' })).toMatchObject({
      resolved: true,
      tests: { PASS_TO_PASS: { success: ['T.x', 'T.y'], failure: [] } },
    });
  });
  test.each([
    ['a failure that now passes', { 'T.x': 'PASSED', 'T.y': 'PASSED', '': 'ERROR' }],
    ['one test less', { 'T.x': 'PASSED', 'T.y': 'FAILED' }],
    ['one test more', { 'T.x': 'PASSED', 'T.y': 'FAILED', '': 'ERROR', z: 'PASSED' }],
    ['another name', { 'T.x': 'PASSED', 'T.z': 'FAILED', '': 'ERROR' }],
  ])('is not met: %s', (_what, outcomes) => {
    expect(resolved(outcomes).resolved).toBe(false);
  });
  test('may have names of properties of Object', () => {
    const poison = JSON.parse('{"__proto__": "PASSED"}');
    expect(judgeBy({ rule: 'expected', expected: poison }, {}).resolved).toBe(false);
    expect(judgeBy({ rule: 'expected', expected: {} }, poison).resolved).toBe(false);
    expect(judgeBy({ rule: 'expected', expected: poison }, poison).resolved).toBe(true);
  });
});

describe('the classes of Multi-SWE', () => {
  const stages = {
    kept: { run: 'PASS', test: 'PASS', fix: 'PASS' },
    fixed: { run: 'FAIL', test: 'FAIL', fix: 'PASS' },
    added: { run: 'NONE', test: 'NONE', fix: 'PASS' },
    gone: { run: 'PASS', test: 'NONE', fix: 'NONE' },
  };
  const good = { kept: 'PASS', fixed: 'PASS', added: 'PASS' };
  const by = (outcomes: Record<string, string>) => judgeBy({ rule: 'classes', stages }, outcomes);

  test('are those of the row again', () => {
    expect(by(good)).toMatchObject({
      resolved: true,
      tests: {
        FAIL_TO_PASS: { success: ['fixed', 'added'], failure: [] },
        PASS_TO_PASS: { success: ['kept'], failure: [] },
      },
    });
    expect(by({ kept: 'PASSED', fixed: 'PASSED', added: 'PASSED', other: 'FAILED' }).resolved).toBe(true);
  });
  test.each([
    ['nothing ran', {}],
    ['what passed fails', { ...good, kept: 'FAIL' }],
    ['what passed is missing', { fixed: 'PASS', added: 'PASS' }],
    ['nothing is fixed', { kept: 'PASS', fixed: 'FAIL', added: 'FAIL' }],
    ['one is not fixed', { ...good, fixed: 'SKIP' }],
    ['a test outside of the lists breaks that passed without any patch', { ...good, gone: 'FAIL' }],
  ])('are not: %s', (_what, outcomes) => {
    expect(by(outcomes).resolved).toBe(false);
  });
  test('count for the tests of its lists alone', () => {
    const listed = { ...stages, fixed: { ...stages.fixed, class: 'f2p' as const } };
    const verdict: Verdict = { rule: 'classes', stages: listed };
    // `added` and `kept` stand in the results, and in no list: upstream compares the lists.
    expect(judgeBy(verdict, { fixed: 'PASS' })).toMatchObject({
      resolved: true,
      tests: {
        FAIL_TO_PASS: { success: ['fixed'], failure: [] },
        PASS_TO_PASS: { success: [], failure: [] },
      },
    });
    expect(judgeBy(verdict, { fixed: 'PASS', kept: 'FAIL' }).resolved).toBe(false);
    expect(judgeBy(verdict, { kept: 'PASS', added: 'PASS' }).resolved).toBe(false);
  });
  test('come from its lists if the results contradict them', () => {
    const verdict: Verdict = {
      rule: 'classes',
      stages: { x: { run: 'NONE', test: 'NONE', fix: 'PASS', class: 'f2p' } },
    };
    expect(judgeBy(verdict, { x: 'PASS' })).toMatchObject({
      resolved: false,
      tests: { FAIL_TO_PASS: { failure: ['x'] } },
    });
  });
});

describe('ids in a JUnit file', () => {
  const instance = {
    FAIL_TO_PASS: ['tests/test_a.py::T::test_x[a b]'],
    PASS_TO_PASS: ['tests/test_a.py::test_y'],
  };
  const by = (outcomes: Record<string, string>, log = '') =>
    judgeBy({ rule: 'junit_ids' }, outcomes, instance, log);
  const all = { 'tests.test_a.T::test_x[a  b]': 'PASSED', 'tests.test_a::test_y': 'PASSED' };

  test('are found in both forms', () => {
    expect(by(all)).toMatchObject({
      resolved: true,
      tests: { FAIL_TO_PASS: { success: instance.FAIL_TO_PASS } },
    });
  });
  test.each([
    ['one is missing', { 'tests.test_a::test_y': 'PASSED' }],
    ['one is skipped', { ...all, 'tests.test_a::test_y': 'SKIPPED' }],
    ['one failed', { ...all, 'tests.test_a::test_y': 'ERROR' }],
    [
      'one lies in another folder',
      { ...all, 'tests.test_a::test_y': 'SKIPPED', 'src.tests.test_a::test_y': 'PASSED' },
    ],
  ])('are not met: %s', (_what, outcomes) => {
    expect(by(outcomes).resolved).toBe(false);
    // With outcomes, the counts of pytest are ignored.
    expect(by(outcomes, '== 2 passed in 0.1s ==').resolved).toBe(false);
  });
  test('yield to the result of the script, and without a file to the counts of pytest', () => {
    expect(by({}, '<pytest>true</pytest>').resolved).toBe(true);
    // A test may print the tag; the script prints it last.
    const printed = 'FAILED\n<pytest>true</pytest>\n== 1 failed in 0.1s ==\n<pytest>false</pytest>\n';
    expect(by({ 'tests.test_a::test_y': 'ERROR' }, printed).resolved).toBe(false);
    expect(by({}, printed).resolved).toBe(false);
    expect(by({}, '== 2 passed, 1 skipped in 0.1s ==')).toEqual({ resolved: true, tests: null });
    expect(by({}, '== 2 passed, 1 error in 0.1s ==').resolved).toBe(false);
    expect(by({}, 'nothing').resolved).toBe(false);
  });
});

const reportOf = (plan: Partial<InstancePlan>, log: string, facts: Parameters<typeof ran>[1] = {}) =>
  gradeEvaluation(someInstance(LISTS), ownPlan({ script: 'true', ...plan }), ran(log, facts), '');

describe('a report by the exit code', () => {
  const pattern = 'OPENSWE_EXIT_CODE=(\\d+)';
  const by = (log: string) =>
    reportOf({ outcomes: { from: 'exit_code', pattern }, verdict: { rule: 'exit_code' } }, log);

  test('is resolved by exit code 0; the last code in the log counts', () => {
    expect(by('OPENSWE_EXIT_CODE=0\n')).toMatchObject({
      resolved: true,
      evaluation: 'completed',
      tests_status: null,
    });
    expect(by('OPENSWE_EXIT_CODE=0\nOPENSWE_EXIT_CODE=1\n')).toMatchObject({ resolved: false });
  });
  test('is not resolved without an exit code: the tests did not start', () => {
    expect(by('bash: pytest: not found\n')).toMatchObject({
      resolved: false,
      evaluation: 'tests_cannot_start',
    });
  });
  test("by the script's exit code needs no log", () => {
    const plan = { outcomes: { from: 'exit_code' }, verdict: { rule: 'exit_code' } } as const;
    expect(reportOf(plan, '', { exit_code: 0 }).resolved).toBe(true);
    expect(reportOf(plan, '', { exit_code: 3 }).resolved).toBe(false);
    expect(reportOf(plan, '', { exit_code: null })).toMatchObject({
      resolved: false,
      evaluation: 'tests_cannot_start',
    });
  });
});

describe('a report by a JUnit file', () => {
  const file = '/tmp/results.xml';
  const plan = { files: [file], outcomes: { from: 'junit', file }, verdict: { rule: 'subset' } } as const;
  const by = (xml: string | null) =>
    reportOf({ ...plan, files: [file] }, '', xml === null ? {} : { files: { [file]: xml } });

  test('reads the file of the tests', () => {
    const xml = '<testsuite><testcase name="a"/><testcase name="b"/></testsuite>';
    expect(by(xml)).toMatchObject({ resolved: true, status_map: { a: 'PASSED', b: 'PASSED' } });
  });
  test('is not resolved if the file is missing, broken or hostile', () => {
    expect(by(null)).toMatchObject({ resolved: false, evaluation: 'tests_cannot_start' });
    for (const xml of ['', '<testsuite>', '<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>', '<a>'.repeat(10_000)])
      expect(by(xml)).toMatchObject({ resolved: false, unreadable: 'raises' });
  });
});

describe('the part of a log that a harness reads', () => {
  const read = (dialect: string, parser: string, log: string) =>
    readOutcomes(
      { outcomes: { from: 'log', dialect, parser } },
      { log, exitCode: 0, files: new Map() },
      someInstance(),
    );

  test('SWE-rebench V1 reads only the text between the markers', () => {
    const log = 'PASSED a\n>>>>> Start Test Output\nPASSED b\n>>>>> End Test Output\nPASSED c\n';
    expect(read('swe-rebench', 'parse_log_pytest', log)).toMatchObject({
      outcomes: new Map([['b', 'PASSED']]),
    });
    // swebench 4.0.3, the base of this harness, ignores a line that is only a status word.
    const lone = '>>>>> Start Test Output\nPASSED\nPASSED b\n>>>>> End Test Output\n';
    expect(read('swe-rebench', 'parse_log_pytest_v2', lone)).toMatchObject({
      outcomes: new Map([['b', 'PASSED']]),
    });
    const none = '>>>>> Start Test Output\n>>>>> End Test Output\nPASSED c\n';
    expect(read('swe-rebench', 'pallets/flask', none)).toMatchObject({ outcomes: new Map() });
    expect(read('swe-rebench', 'parse_log_pytest', 'PASSED a\n')).toEqual({
      readable: false,
      why: 'no_markers',
    });
  });

  test('SWE-rebench V2 reads the whole log and removes times from names', () => {
    const log =
      'ok 1 adds (12ms)\nnot ok 2 adds (1.5 s)\nok 3 waits IN 3 sec twice\nok 4 sorts in 5 seconds [ 3 ms ]\n';
    const found = read('swe-rebench-v2', 'parse_log_tap', log);
    expect(found).toMatchObject({
      outcomes: new Map([
        ['adds', 'PASSED'],
        ['waits twice', 'PASSED'],
        ['sorts in 5 seconds', 'PASSED'],
      ]),
    });
    expect(found.readable && found.nameOf?.(' waits in 9.25 MSEC twice(1s)')).toBe('waits twice');
  });

  test('a name of a million blanks or words is read in linear time', () => {
    // The CPU time of this thread, so that other processes do not fail the test.
    const start = process.threadCpuUsage();
    for (const piece of [' ', ' in 1', ' in ', '(1 ', '[ 1']) {
      const found = read('swe-rebench-v2', 'parse_log_tap', `ok 1 a${piece.repeat(1_000_000)}s)\n`);
      expect(found.readable).toBe(true);
    }
    const { user, system } = process.threadCpuUsage(start);
    expect((user + system) / 1000).toBeLessThan(10_000);
  });

  test('SWE-bench-Live reads the log without escape sequences', () => {
    expect(read('swe-bench-live', 'pytest', '\u001b[32mPASSED\u001b[0m a\nXFAIL b\n')).toMatchObject({
      outcomes: new Map([
        ['a', 'pass'],
        ['b', 'fail'],
      ]),
    });
  });
});

test('equal: two names that the parser reads as one are unresolved, as in the harness', () => {
  const folded = judge({
    read: {
      readable: true,
      outcomes: new Map([['a', 'PASSED']]),
      text: null,
      nameOf: (name: string) => name.replace(/\[.*/, ''),
    },
    evidence: { log: '', exitCode: 0, files: new Map() },
    verdict: { rule: 'equal' },
    instance: { FAIL_TO_PASS: ['a[/x]'], PASS_TO_PASS: ['a[/y]'] },
  });
  expect(folded.resolved).toBe(false);
});
