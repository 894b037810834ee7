/** Tests that the closing lines of `npm test` list everything that was left out, with the reason. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from './temporaryfolder.ts';

const SUMMARY = resolve(import.meta.dirname, '../ci/summary.ts');
const PROJECTS = ['unit', 'redis', 'containers', 'e2e'];

const result = (name: string, status: string) => ({ fullName: name, status });
const report = (results: readonly { fullName: string; status: string }[]) => ({
  numTotalTests: results.length,
  numPassedTests: results.filter(({ status }) => status === 'passed').length,
  numFailedTests: 0,
  numPendingTests: results.filter(({ status }) => status === 'skipped').length,
  numTodoTests: 0,
  testResults: [{ name: 'a.test.ts', status: 'passed', message: '', assertionResults: results }],
});

function closing(files: Record<string, string>): { code: number | null; output: string } {
  const folder = temporaryFolder('summary');
  for (const project of PROJECTS) {
    writeFileSync(join(folder, `${project}.json`), JSON.stringify(report([result('works', 'passed')])));
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { status, stdout } = spawnSync(process.execPath, [SUMMARY, folder], { encoding: 'utf8' });
  return { code: status, output: stdout };
}

const skipped = (why: string | null): Record<string, string> => ({
  'unit.json': JSON.stringify(report([result('works', 'passed'), result('needs x', 'skipped')])),
  leftout: `${JSON.stringify({ file: 'a.test.ts', name: 'needs x', why })}\n`,
});

test('all passed and nothing left out: one line', () => {
  expect(closing({ passed: 'lint\ntypes\n' })).toEqual({ code: 0, output: '\n6 passed, 0 failed\n' });
});

test('a program that could not be installed is named with the reason', () => {
  const { code, output } = closing({
    missing: 'podman\t`podman --version` does not run: E: no such package\n',
  });
  expect(code).toBe(0);
  expect(output).toMatch(/\nMISSING: .*\n {2}podman: `podman --version` does not run: E: no such package\n/);
  expect(output).toMatch(/\n4 passed, 0 failed\n$/);
});

test('a test that was skipped is named with its reason', () => {
  const { code, output } = closing(skipped('there is no x'));
  expect(code).toBe(0);
  expect(output).toMatch(/\nLEFT OUT: .*\n {2}a\.test\.ts: needs x: there is no x\n/);
  expect(output).toMatch(/\n4 passed, 0 failed, 1 skipped\n$/);
});

test('a test that was skipped without a reason is a failure', () => {
  const { code, output } = closing(skipped(null));
  expect(code).toBe(1);
  expect(output).toMatch(/\nFAILED\n {2}a\.test\.ts: needs x: skipped without a reason\n/);
});

test('a check that was left out is named', () => {
  expect(closing({ 'leftout.checks': 'check setup: only root\n' }).output).toContain(
    '  check setup: only root\n',
  );
});
