import type { Instance } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { GOLD, instance, ownPlan, ran } from '../instance.fixture.ts';
import type { GraderName } from '../plan/graders.ts';
import { planEvaluation } from '../plan/plan.ts';
import { type EvaluationFacts, gradeEvaluation } from './grade.ts';
import { officialReport, runReport } from './official.ts';

const END = '=== 2 passed in 0.01s ===';
const marked = (tests: string, code = 0): string =>
  `+ git apply -v -\nApplied patch tests/test_crate.py cleanly.\n+ : '>>>>> Start Test Output'\n${tests}\n${END}\n` +
  `+ : '>>>>> End Test Output'\n+ echo '>>>>> Test Exit Code: ${code}'\n>>>>> Test Exit Code: ${code}\n`;
const PASSES = 'PASSED tests/test_crate.py::test_holds';
const OPENS = 'PASSED tests/test_crate.py::test_opens';
const GOOD = marked(`${PASSES}\n${OPENS}`);

const facts = (changes: Partial<EvaluationFacts>): EvaluationFacts =>
  ran(GOOD, { image_digest: 'sha256:1', ...changes });

const grade = (
  changes: Partial<EvaluationFacts>,
  grader: GraderName = 'swebench-4.1.0',
  row: Instance = instance(),
) => gradeEvaluation(row, planEvaluation(row, grader), facts(changes), GOLD);
const context = (log: string | null = null) => ({ log, model: 'm', timeoutSeconds: 1800 });

test('a good log is resolved, and the report has every fact', () => {
  expect(grade({})).toEqual({
    format: 'swefarm-report-1',
    instance_id: 'depot__crate-7',
    patch_state: 'applied',
    evaluation: 'completed',
    resolved: true,
    tests_status: {
      FAIL_TO_PASS: { success: ['tests/test_crate.py::test_holds'], failure: [] },
      PASS_TO_PASS: { success: ['tests/test_crate.py::test_opens'], failure: [] },
      FAIL_TO_FAIL: { success: [], failure: [] },
      PASS_TO_FAIL: { success: [], failure: [] },
    },
    status_map: { 'tests/test_crate.py::test_holds': 'PASSED', 'tests/test_crate.py::test_opens': 'PASSED' },
    applied_with: 'git apply --verbose',
    test_exit_code: 0,
    grader: 'swebench-4.1.0',
    parser: 'pytest',
    image_digest: 'sha256:1',
    trust: { level: 'clean', reasons: [] },
  });
});

describe('how an evaluation ends', () => {
  test.each([
    ['no patch', { patch_state: 'none', log: null }, 'not_run', null],
    ['empty patch, not run', { patch_state: 'empty', log: null }, 'not_run', false],
    ['empty patch, run all the same', { patch_state: 'empty', log: marked(OPENS) }, 'completed', false],
    ['too large', { patch_state: 'too_large', log: null }, 'not_run', false],
    [
      'not applied, with the output of the attempts',
      { patch_state: 'not_applied', log: 'error: no' },
      'not_run',
      false,
    ],
    ['timed out', { timed_out: true }, 'timed_out', false],
    ['killed by its own limit', { log: '+ pytest\n', sandbox_killed: true }, 'sandbox_killed', false],
    ['no end marker', { log: "+ : '>>>>> Start Test Output'\nPASSED a\n" }, 'tests_cannot_start', false],
    ['nothing to read', { log: marked('ImportError while loading conftest') }, 'tests_cannot_start', false],
    ['a bad code printed by the tests', { log: `${GOOD}>>>>> Tests Errored` }, 'completed', false],
    [
      'a failed test',
      { log: marked(`${PASSES}\nFAILED tests/test_crate.py::test_opens - no`) },
      'completed',
      false,
    ],
    ['a missing test', { log: marked(PASSES) }, 'completed', false],
    ['CRLF line ends', { log: GOOD.replaceAll('\n', '\r\n') }, 'completed', true],
    ['output outside of the markers', { log: `${PASSES}\n${OPENS}\n${marked('')}` }, 'completed', true],
  ] as const)('%s', (_name, changes, evaluation, resolved) => {
    expect(grade(changes)).toMatchObject({ evaluation, resolved });
  });
});

describe('a log without its middle', () => {
  test('gives no verdict if the rest does not resolve, as missing tests may pass', () => {
    const report = grade({ log: marked(PASSES), log_cut: true });
    expect(report).toMatchObject({ evaluation: 'parser_failed', resolved: false });
    expect(report.unreadable).toMatch('longer than log_limit');
  });

  test('that resolves is suspicious, because the missing part may contain failures', () => {
    const report = grade({ log_cut: true });
    expect(report).toMatchObject({ evaluation: 'completed', resolved: true });
    expect(report.trust.level).toBe('suspicious');
  });

  test('reports that the tests timed out or were killed', () => {
    expect(grade({ log_cut: true, timed_out: true }).evaluation).toBe('timed_out');
    expect(grade({ log_cut: true, sandbox_killed: true, log: '' }).evaluation).toBe('sandbox_killed');
  });
});

describe('the rules of the harnesses', () => {
  const skipped = marked(`SKIPPED tests/test_crate.py::test_holds\n${OPENS}`);
  const stillSkipped = marked(`${PASSES}\nSKIPPED tests/test_crate.py::test_opens`);

  test('4.1.0 ignores a skipped test; in 5.0.2 it neither resolves nor regresses', () => {
    expect(grade({ log: skipped })).toMatchObject({
      resolved: true,
      tests_status: { FAIL_TO_PASS: { success: [] } },
    });
    expect(grade({ log: skipped }, 'swebench-5.0.2').resolved).toBe(false);
    expect(grade({ log: stillSkipped }, 'swebench-5.0.2').resolved).toBe(true);
  });

  test('xfail passes', () => {
    expect(grade({ log: marked(`XFAIL tests/test_crate.py::test_holds\n${OPENS}`) }).resolved).toBe(true);
  });

  test('a row with only FAIL_TO_PASS is resolved if the log lists no failure', () => {
    const row = instance({ eval_type: 'fail_only' });
    expect(grade({ log: marked('2 passing') }, 'swebench-4.1.0', row)).toMatchObject({
      resolved: true,
      evaluation: 'completed',
    });
    // The log does not show that tests ran: the official verdict stands, but it is no evidence.
    expect(grade({ log: marked('').replace(END, '') }, 'swebench-4.1.0', row)).toMatchObject({
      resolved: true,
      evaluation: 'tests_cannot_start',
    });
    expect(grade({ log: marked('').replace(END, '') }, 'swebench-5.0.2', row).resolved).toBe(false);
  });

  test('5.0.2 compares the recorded exit code with the log', () => {
    const report = grade({ log: marked(`${PASSES}\n${OPENS}`, 2) }, 'swebench-5.0.2');
    expect(report).toMatchObject({ resolved: false, unreadable: 'exit_code_contradicts', test_exit_code: 2 });
  });

  test('5.0.2 finds ids that were cut within brackets, if all matching tests agree', () => {
    const row = instance({ FAIL_TO_PASS: ['t.py::a[log(photon'], PASS_TO_PASS: [] });
    const log = (second: string) => marked(`PASSED t.py::a[log(photon_s)]\n${second} t.py::a[log(photon_t)]`);
    expect(grade({ log: log('XFAIL') }, 'swebench-5.0.2', row).resolved).toBe(true);
    expect(grade({ log: log('FAILED') }, 'swebench-5.0.2', row).resolved).toBe(false);
    expect(grade({ log: log('XFAIL') }, 'swebench-4.1.0', row).resolved).toBe(false);
  });

  test('the fork requires output of git and reads the whole log', () => {
    const log = `Applied patch tests/test_crate.py cleanly.\n${PASSES}\n${OPENS}\n`;
    const row = instance({ repo: 'getmoto/moto', version: '5.0' });
    expect(grade({ log }, 'swegym', row).resolved).toBe(true);
    expect(grade({ log: `${PASSES}\n${OPENS}` }, 'swegym', row)).toMatchObject({
      resolved: false,
      unreadable: 'test_patch_not_applied',
    });
  });

  test('a log on which the harness raises an error has no report', () => {
    const row = instance({ log_parser: 'django' });
    const report = grade({ log: marked('FAIL:') }, 'swebench-4.1.0', row);
    expect(report).toMatchObject({ resolved: false, unreadable: 'raises', evaluation: 'completed' });
    expect(officialReport(report, context())).toBeNull();
  });
});

describe('official files', () => {
  test('4.1.0', () => {
    expect(officialReport(grade({}), context())).toEqual({
      'depot__crate-7': {
        patch_is_None: false,
        patch_exists: true,
        patch_successfully_applied: true,
        resolved: true,
        tests_status: grade({}).tests_status,
      },
    });
    expect(officialReport(grade({ patch_state: 'none', log: null }), context())).toEqual({
      'depot__crate-7': {
        patch_is_None: true,
        patch_exists: false,
        patch_successfully_applied: false,
        resolved: false,
      },
    });
  });

  test('5.0.2 reports broken infrastructure by a guess', () => {
    const log = 'ModuleNotFoundError: crate\n';
    expect(officialReport(grade({ log }, 'swebench-5.0.2'), context(log))).toEqual({
      'depot__crate-7': {
        patch_is_None: false,
        patch_exists: true,
        patch_successfully_applied: false,
        resolved: false,
        infra_failure: false,
        infra_failure_reason: 'missing_module',
      },
    });
  });

  test('the fork writes none; SWE-smith omits the instance and writes timeouts', () => {
    const row = instance({ repo: 'getmoto/moto', version: '5.0' });
    const withoutPatch = officialReport(grade({ patch_state: 'none', log: null }, 'swegym', row), context());
    expect(withoutPatch).toMatchObject({ 'depot__crate-7': { none: true, patch_is_None: false } });
    const plan = ownPlan({
      grader: 'swesmith-0.0.9',
      outcomes: { from: 'log', dialect: 'swesmith', parser: 'smith_pytest' },
    });
    const smith = (changes: Partial<EvaluationFacts>) =>
      gradeEvaluation(instance({ family: 'swesmith', plan }), plan, facts(changes), GOLD);
    expect(officialReport(smith({ timed_out: true }), context())).toEqual({
      timed_out: true,
      timeout: 1800,
    });
    expect(officialReport(smith({}), context())).toMatchObject({
      patch_exists: true,
      model_name_or_path: 'm',
    });
  });

  test.each([
    { patch_state: 'empty', log: null },
    { patch_state: 'not_applied', log: 'x' },
    { timed_out: true },
  ] as const)('none is written for %o', (changes) => {
    expect(officialReport(grade(changes), context())).toBeNull();
  });

  test('the run report sorts and counts', () => {
    const entries = [
      { instance_id: 'd', prediction: 'missing', resolved: null },
      { instance_id: 'c', prediction: 'empty', resolved: null },
      {
        instance_id: 'b',
        prediction: 'patch',
        resolved: null,
        guess: { reason: 'out_of_memory', tier: 'environment' },
      },
      { instance_id: 'a', prediction: 'patch', resolved: true },
      { instance_id: 'e', prediction: 'patch', resolved: false },
    ] as const;
    const report = runReport(entries, ['e', 'a', 'b', 'c'], 'swebench-4.1.0');
    expect(report).toEqual({
      total_instances: 5,
      submitted_instances: 4,
      completed_instances: 2,
      resolved_instances: 1,
      unresolved_instances: 1,
      empty_patch_instances: 1,
      error_instances: 1,
      completed_ids: ['a', 'e'],
      incomplete_ids: ['d'],
      empty_patch_ids: ['c'],
      submitted_ids: ['a', 'b', 'c', 'e'],
      resolved_ids: ['a'],
      unresolved_ids: ['e'],
      error_ids: ['b'],
      schema_version: 2,
      unstopped_instances: 0,
      unstopped_containers: [],
      unremoved_images: [],
    });
    expect(runReport(entries, ['a'], 'swebench-5.0.2')).toMatchObject({
      infra_failure_ids: ['b'],
      ambiguous_failure_instances: 0,
      failure_reasons: { b: 'out_of_memory' },
    });
  });
});
