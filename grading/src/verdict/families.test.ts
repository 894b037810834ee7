import { Instance, type InstancePlan } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { type FamilyCase, familyCases, skipWithoutCases } from '../corpus.fixture.ts';
import { parserName } from '../dialects/registry.ts';
import { pytestCounts } from '../parsers/summaryline.ts';
import type { Evidence } from './evidence.ts';
import { findByIds } from './junitids.ts';
import { readOutcomes } from './outcomes.ts';
import { judge } from './rules.ts';

type Plan = Pick<InstancePlan, 'outcomes' | 'verdict'>;

const instanceOf = (gain: unknown, maintain: unknown): Instance =>
  Instance.parse({
    instance_id: 'acme__calc-1',
    repo: 'acme/calc',
    base_commit: 'HEAD',
    problem_statement: '',
    family: 'custom',
    image: 'calc',
    FAIL_TO_PASS: gain,
    PASS_TO_PASS: maintain,
  });

function verdictOf(plan: Plan, instance: Instance, evidence: Partial<Evidence>) {
  const whole: Evidence = { log: '', exitCode: 0, files: new Map(), ...evidence };
  const read = readOutcomes(plan, whole, instance);
  if (!read.readable) return { resolved: false, tests: null, passed: [] };
  const judged = judge({ read, evidence: whole, verdict: plan.verdict, instance });
  const passed = [...read.outcomes].filter(([, status]) => status === 'PASSED').map(([name]) => name);
  return { ...judged, passed };
}

/** Intended differences, with their reasons. */
const OTHERWISE: Record<string, string> = {
  'swe-lego verdict/json-strings':
    'lists that are JSON texts are read as lists before anything is graded; upstream takes each letter for a test',
};

function family(file: string, parsers: string[], check: (entry: FamilyCase) => void): void {
  describe(file, () => {
    const cases = familyCases(file).filter(({ parser }) => parsers.includes(parser));
    test('is beside the repository', ({ skip }) => {
      skipWithoutCases(cases, skip);
      const otherwise = cases.filter((entry) => `${file} ${entry.case}` in OTHERWISE);
      console.info(`${file}: ${cases.length - otherwise.length} of ${cases.length} verdicts must be equal`);
      for (const entry of otherwise) console.info(`  ${entry.case}: ${OTHERWISE[`${file} ${entry.case}`]}`);
    });
    for (const entry of cases)
      if (!(`${file} ${entry.case}` in OTHERWISE)) test(entry.case, () => check(entry));
  });
}

family('r2e-gym', ['verdict'], ({ log, rows, expected }) => {
  const plan: Plan = {
    outcomes: { from: 'log', dialect: 'r2e-gym', parser: 'r2e' },
    verdict: { rule: 'expected', expected: JSON.parse(String(rows.expected_output_json)) },
  };
  expect(verdictOf(plan, instanceOf([], []), { log }).resolved).toBe(expected.reward === 1);
});

family('swe-rebench', ['verdict'], ({ log, rows, expected }) => {
  const parser = (rows.install_config as { log_parser: string }).log_parser;
  if (expected.error !== undefined) {
    expect(parserName(parser, 'swe-rebench')).toBeNull();
    return;
  }
  // Without a patch there is no evaluation, so no rule applies.
  if (rows.model_patch === null) return;
  const plan: Plan = {
    outcomes: { from: 'log', dialect: 'swe-rebench', parser },
    verdict: { rule: 'swebench' },
  };
  const verdict = verdictOf(plan, instanceOf(rows.FAIL_TO_PASS, rows.PASS_TO_PASS), { log });
  expect(verdict).toMatchObject({ resolved: expected.resolved, tests: expected.tests_status ?? null });
});

family('swe-rebench-v2', ['verdict'], ({ case: name, log, rows, expected }) => {
  const parser = (rows.install_config as { log_parser: string }).log_parser;
  if (name === 'verdict/unknown-parser') {
    expect(parserName(parser, 'swe-rebench-v2')).toBeNull();
    return;
  }
  // The harness refuses an empty patch before a run, so no rule applies.
  if (name === 'verdict/empty-patch-is-an-error') return;
  const plan = (rule: 'equal' | 'subset'): Plan => ({
    outcomes: { from: 'log', dialect: 'swe-rebench-v2', parser },
    verdict: { rule },
  });
  const instance = instanceOf(rows.FAIL_TO_PASS, rows.PASS_TO_PASS);
  const verdict = verdictOf(plan('equal'), instance, { log });
  expect(verdict.resolved).toBe(expected.passed_match);
  expect(verdict.passed.sort()).toEqual(expected.passed_actual);
  if (verdict.resolved) expect(verdictOf(plan('subset'), instance, { log }).resolved).toBe(true);
});

family('swe-lego', ['verdict'], ({ log, rows, expected }) => {
  const plan: Plan = {
    outcomes: { from: 'log', dialect: 'swe-lego', parser: 'pytest_rA' },
    verdict: { rule: 'subset' },
  };
  const verdict = verdictOf(plan, instanceOf(rows.FAIL_TO_PASS, rows.PASS_TO_PASS), { log });
  expect(verdict.resolved).toBe(expected.reward === 1);
});

const given = (outcomes: Map<string, string>, verdict: Plan['verdict'], instance: Instance) =>
  judge({
    read: { readable: true, outcomes, text: null },
    evidence: { log: '', exitCode: 0, files: new Map() },
    verdict,
    instance,
  });

family('swe-bench-live', ['verdict'], ({ rows, expected }) => {
  // A text in place of the map means that the parser raised.
  if (typeof rows.status === 'string') {
    expect(expected.error).toBe('AttributeError');
    return;
  }
  const instance = instanceOf(rows.FAIL_TO_PASS, rows.PASS_TO_PASS);
  const judged = given(new Map(Object.entries(rows.status as object)), { rule: 'live' }, instance);
  expect(judged.resolved).toBe(expected.resolved);
  const { FAIL_TO_PASS: gain, PASS_TO_PASS: maintain } = judged.tests ?? {};
  expect({ ...gain, success: [...new Set(gain?.success)] }).toEqual(expected.FAIL_TO_PASS);
  expect(maintain).toEqual(expected.PASS_TO_PASS);
});

family('swe-bench-pro', ['verdict'], ({ log, rows, expected }) => {
  const list = (text: unknown): unknown => JSON.parse(String(text).replace(/^\['(.*)'\]$/, '["$1"]'));
  const outcomes = new Map<string, string>();
  for (const { name, status } of JSON.parse(log).tests)
    if (outcomes.get(name) !== 'PASSED') outcomes.set(name, status);
  const judged = given(
    outcomes,
    { rule: 'subset' },
    instanceOf(list(rows.fail_to_pass), list(rows.pass_to_pass)),
  );
  expect(judged.resolved).toBe(expected.resolved);
});

type Result = [passed?: string[], failed?: string[], skipped?: string[]];
const WORDS = ['PASS', 'FAIL', 'SKIP'] as const;
const statusIn = (result: Result, name: string): string =>
  WORDS.find((_, at) => result[at]?.includes(name)) ?? 'NONE';

family('multi-swe-bench', ['report'], ({ rows, expected }) => {
  const [run, withTests, fix] = ['run_result', 'test_patch_result', 'fix_patch_result'].map(
    (column) => rows[column] as Result,
  ) as [Result, Result, Result];
  const listed = new Map(
    (['p2p', 'f2p', 's2p', 'n2p'] as const).flatMap((one) =>
      ((rows.dataset as Record<string, string[]>)[`${one}_tests`] ?? []).map((name) => [name, one] as const),
    ),
  );
  const names = new Set([...run, ...withTests].flatMap((list) => list ?? []).concat([...listed.keys()]));
  const stages = Object.fromEntries(
    [...names].map((name) => {
      const own = listed.get(name);
      const statuses = { run: statusIn(run, name), test: statusIn(withTests, name) };
      return [name, own ? { ...statuses, fix: 'PASS', class: own } : { ...statuses, fix: 'NONE' }];
    }),
  );
  const outcomes = new Map(fix.flatMap((list, at) => (list ?? []).map((name) => [name, `${WORDS[at]}`])));
  const judged = given(outcomes as Map<string, string>, { rule: 'classes', stages }, instanceOf([], []));
  expect(judged.resolved).toBe(expected.resolved);
  if (judged.resolved) expect(judged.tests?.PASS_TO_PASS.success).toEqual(expected.p2p_tests);
});

family('scale-swe', ['pytest-summary', 'junit'], ({ parser, log, rows, expected }) => {
  if (parser === 'pytest-summary') {
    const { counts, allPassed } = pytestCounts(log);
    expect(allPassed).toBe(expected.all_passed);
    for (const [key, word] of [
      ['passed', 'passed'],
      ['failed', 'failed'],
      ['errors', 'error'],
      ['skipped', 'skipped'],
      ['warnings', 'warning'],
      ['xfailed', 'xfailed'],
      ['xpassed', 'xpassed'],
      ['deselected', 'deselected'],
    ] as const)
      expect([key, counts.get(word) ?? 0]).toEqual([key, expected[key]]);
    return;
  }
  const file = '/tmp/results.xml';
  const plan: Plan = { outcomes: { from: 'junit', file }, verdict: { rule: 'junit_ids' } };
  const instance = instanceOf(rows.expected_tests, []);
  const evidence = { files: new Map([[file, log]]) };
  expect(verdictOf(plan, instance, evidence).resolved).toBe(expected.accepted);
  const read = readOutcomes(plan, { log: '', exitCode: 0, ...evidence }, instance);
  const statusOf = findByIds(read.readable ? read.outcomes : new Map());
  const matched = instance.FAIL_TO_PASS.flatMap((id): [string, string][] => {
    const status = statusOf(id);
    return status === undefined ? [] : [[id, status === 'PASSED' ? 'passed' : 'failed']];
  });
  expect(Object.fromEntries(matched)).toEqual((expected.details as { matched: object }).matched);
});
