import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Dataset } from '@swefarm/datasets';
import { brokenBecause, type Report, type Result } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { type EvaluationRound, healthFinding, withEgress } from './finding.ts';
import { addKnownHealth, appendFindings, type HealthFinding, readRegistry } from './registry.ts';

const TESTED = { instance_id: 'i-1', FAIL_TO_PASS: ['a', 'b'] };
const NOW = new Date('2026-01-01T00:00:00Z');

function round(
  resolved: boolean | null,
  tests: { passed: string[]; failed: string[] },
  seconds = 1,
): EvaluationRound {
  const nothing = { success: [], failure: [] };
  const report = {
    resolved,
    evaluation: resolved === null ? 'not_run' : 'completed',
    grader: 'swebench-4.1.0',
    image_digest: 'sha256:a',
    tests_status: {
      FAIL_TO_PASS: { success: tests.passed, failure: tests.failed },
      PASS_TO_PASS: nothing,
      FAIL_TO_FAIL: nothing,
      PASS_TO_FAIL: nothing,
    },
  } as unknown as Report;
  return { report, result: { seconds: { evaluation: seconds + 1, tests: seconds } } as unknown as Result };
}
const passes = (seconds?: number): EvaluationRound =>
  round(true, { passed: ['a', 'b'], failed: [] }, seconds);
const fails = round(false, { passed: ['a'], failed: ['b'] });
const finding = (gold: EvaluationRound[], noop = fails): HealthFinding =>
  healthFinding(TESTED, 'none', gold, [noop], NOW) as HealthFinding;

test('an instance is healthy if gold resolves and the untouched tree does not', () => {
  const found = finding([passes(2), passes(5)]);
  expect(found).toMatchObject({
    gold_resolves: true,
    noop_resolves: false,
    gold_seconds: 5,
    times: 2,
    flaky: [],
  });
  expect(brokenBecause(found)).toBeNull();
});

test('a finding names flaky tests', () => {
  const found = finding([passes(), fails, passes()]);
  expect(found).toMatchObject({ gold_resolves: false, flaky: ['b'], times: 3 });
  expect(brokenBecause(found)).toMatch(/not always resolved \(flaky: b\)/);
});

test('a finding names tests that gold leaves skipped or expected to fail', () => {
  const expected = passes();
  const report = { ...expected.report, status_map: { a: 'PASSED', b: 'XFAIL', c: 'SKIPPED' } } as Report;
  expect(finding([passes(), { ...expected, report }]).unpassed).toEqual(['b']);
  expect(finding([passes()]).unpassed).toEqual([]);
});

test('an instance is broken if the untouched tree resolves, gold does not, or needs the network', () => {
  expect(brokenBecause(finding([passes()], passes()))).toMatch(/untouched tree/);
  expect(brokenBecause(finding([fails]))).toBe('gold is not resolved');
  const online = { ...finding([passes()]), network: 'egress' as const };
  expect(brokenBecause(withEgress(finding([fails]), online))).toBe('gold needs the network');
  expect(withEgress(finding([passes()]), online).needs_egress).toBe(false);
});

test('one of several evaluations of the untouched tree can show a fault', () => {
  const several = (...noop: EvaluationRound[]) => healthFinding(TESTED, 'none', [passes()], noop, NOW);
  expect(several(fails, passes())).toMatchObject({ noop_resolves: true, flaky: ['b'] });
  expect(several(fails, fails)).toMatchObject({ noop_resolves: false, flaky: [] });
  expect(several()?.noop_resolves).toBeNull();
});

test('without a verdict there is no finding', () => {
  const lost: EvaluationRound = { ...passes(), report: null };
  const unjudged = round(null, { passed: [], failed: [] });
  expect(healthFinding(TESTED, 'none', [lost, unjudged], [fails], NOW)).toBeNull();
  expect(finding([lost, passes()]).times).toBe(1);
});

test('the last finding of an image, grader and network counts; an incomplete line does not', async () => {
  const path = join(temporaryFolder('health'), 'deep', 'health.jsonl');
  expect((await readRegistry(path)).size).toBe(0);
  await appendFindings(path, [finding([fails]), { ...finding([passes()]), image_digest: 'sha256:b' }]);
  await appendFindings(path, [finding([passes()])]);
  await appendFile(path, '{"format":"swefarm-heal');
  const known = (await readRegistry(path)).get('i-1');
  expect(known?.map((one) => [one.image_digest, one.gold_resolves])).toEqual([
    ['sha256:a', true],
    ['sha256:b', true],
  ]);
  await appendFile(path, '\n');
  await expect(readRegistry(path)).rejects.toThrow(/health\.jsonl:4: not a finding/);
});

test('instances get their findings; broken ones are named, or skipped', () => {
  const row = (instance_id: string) => ({ instance_id, patch: 'p' });
  const instances = ['good', 'bad', 'new'].map(row);
  const dataset = { path: '/d', sha256: 'x', instances } as unknown as Dataset;
  const registry = new Map([
    ['good', [finding([fails]), { ...finding([passes()]), image_digest: 'sha256:b' }]],
    ['bad', [finding([fails])]],
  ]);
  const warned = addKnownHealth(dataset, registry, false);
  expect([...warned.broken]).toEqual([['bad', 'gold is not resolved']]);
  expect(warned.dataset.sha256).toBe('x');
  expect(warned.dataset.instances.map(({ health }) => health?.length)).toEqual([2, 1, undefined]);
  const skipped = addKnownHealth(dataset, registry, true);
  expect(skipped.dataset.instances.map(({ instance_id }) => instance_id)).toEqual(['good', 'new']);
  expect(skipped.dataset.sha256).not.toBe('x');
});
