import { existsSync, readFileSync } from 'node:fs';
import { Instance } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { ran } from '../instance.fixture.ts';
import type { Dialect } from '../parsers/reader.ts';
import { planEvaluation } from '../plan/plan.ts';
import { gradeEvaluation } from '../report/grade.ts';
import { parserName, readLog } from './registry.ts';

/** Logs, and the outcomes that the real harnesses read. Only some machines have this folder beside the repository. */
const CORPUS = new URL('../../../../shared/grading/corpus/', import.meta.url);
const DIALECTS: [Dialect, string][] = [
  ['4.1.0', 'swebench_4_1_0'],
  ['5.0.2', 'swebench_5_0_2'],
  ['swegym', 'swegym_fork'],
];
type Case = { family: string; log: string; repo: string; expected: Record<string, Record<string, string>> };

const here = existsSync(new URL('expected.json', CORPUS));
const cases: [string, Case][] = here
  ? Object.entries(JSON.parse(readFileSync(new URL('expected.json', CORPUS), 'utf8')))
  : [];

describe('the corpus: every status map of every harness', () => {
  test('has cases if it is beside the repository', ({ skip }) => {
    skip(!here, '../shared/grading/corpus is not beside the repository');
    expect(cases.length).toBeGreaterThan(0);
  });

  for (const [name, entry] of cases) {
    for (const [dialect, key] of DIALECTS) {
      const expected = entry.expected[key] ?? {};
      test(`${name} read by ${dialect}`, () => {
        if ('__unavailable__' in expected) {
          expect(parserName(entry.family, dialect)).toBeNull();
          return;
        }
        const log = readFileSync(new URL(entry.log, CORPUS), 'utf8');
        const instance = { instance_id: name, repo: entry.repo, version: '', test_patch: '' };
        const read = () => Object.fromEntries(readLog(entry.family, dialect, log, instance));
        if ('__raises__' in expected) expect(read).toThrow(RangeError);
        else expect(read()).toEqual(expected);
      });
    }
  }
});

const INSTANCES = new URL('../../../../shared/instances/instances.jsonl', import.meta.url);

describe('recorded runs of real instances', () => {
  const rows = here && existsSync(INSTANCES) ? readFileSync(INSTANCES, 'utf8').trim().split('\n') : [];
  const tests = (value: string | string[]): string[] =>
    typeof value === 'string' ? JSON.parse(value) : value;
  test('are beside the repository', ({ skip }) => {
    skip(
      !here || !existsSync(INSTANCES),
      '../shared/grading/corpus or ../shared/instances is not beside the repository',
    );
    expect(rows.length).toBeGreaterThan(0);
  });

  test.each(
    rows.flatMap((row) => [
      [JSON.parse(row), 'gold'],
      [JSON.parse(row), 'noop'],
    ]),
  )('$instance_id', (row, kind) => {
    const { environment, ...columns } = row;
    const instance = Instance.parse({
      ...columns,
      FAIL_TO_PASS: tests(row.FAIL_TO_PASS),
      PASS_TO_PASS: tests(row.PASS_TO_PASS),
      family: 'custom',
      test_cmd: environment.test_cmd,
      log_parser: environment.log_parser,
    });
    const log = readFileSync(new URL(`logs/ci.${kind}.${row.instance_id}.log`, CORPUS), 'utf8');
    for (const grader of ['swebench-4.1.0', 'swebench-5.0.2'] as const) {
      const report = gradeEvaluation(
        instance,
        planEvaluation(instance, grader),
        ran(log, { patch_state: kind === 'gold' ? 'applied' : 'empty', applied_with: null }),
        kind === 'gold' ? instance.patch : '',
      );
      expect(report).toMatchObject({
        resolved: kind === 'gold',
        evaluation: 'completed',
        trust: { level: 'clean', reasons: [] },
      });
    }
  });
});
