/** Runs the Python package's unit tests with the machine's python3 and standard library. Tests that need verl run in ci:full. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const PACKAGE_URL = new URL('../python/', import.meta.url);
const PACKAGE = fileURLToPath(PACKAGE_URL);

test('the Python package passes its unit tests', { timeout: 120_000 }, async () => {
  const { stderr } = await promisify(execFile)(
    'python3',
    ['-m', 'unittest', 'discover', '-s', 'tests', '-t', 'tests'],
    { cwd: PACKAGE, env: { PATH: process.env.PATH, PYTHONPATH: '.', PYTHONDONTWRITEBYTECODE: '1' } },
  );
  expect(stderr).toMatch(/Ran [1-9]\d* tests[\s\S]*\nOK\s*$/);
});

test('the Python package has the version of the farm', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', PACKAGE_URL), 'utf8'));
  expect(await readFile(new URL('pyproject.toml', PACKAGE_URL), 'utf8')).toContain(
    `version = "${version}"\n`,
  );
});
