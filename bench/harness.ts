/** The harnesses of others from PyPI, in an environment that later runs reuse. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
const PACKAGES = ['swebench==4.1.0', 'swesmith==0.0.9'];
const MOST_MS = 60 * 60_000;
const MOST_OUTPUT = 64 * 1024 ** 2;

/** A Python that has both harnesses. */
export async function ensureHarnesses(): Promise<string> {
  const venv = join(ROOT, '.swefarm/cache/harnesses-4.1.0-0.0.9');
  const python = join(venv, 'bin/python');
  if (existsSync(join(venv, '.complete'))) return python;
  console.error(`installing ${PACKAGES.join(' and ')} into ${venv}`);
  await run('python3', ['-m', 'venv', '--clear', venv]);
  await run(join(venv, 'bin/pip'), ['install', '-q', ...PACKAGES], { maxBuffer: MOST_OUTPUT });
  await writeFile(join(venv, '.complete'), '');
  return python;
}

/** Runs it in `cwd`, which gets its logs and reports; nothing is looked for on a hub. @throws Error with its last output */
export async function runPython(python: string, args: readonly string[], cwd: string): Promise<void> {
  await mkdir(cwd, { recursive: true });
  const env = {
    ...process.env,
    HF_HUB_OFFLINE: '1',
    HF_DATASETS_OFFLINE: '1',
    HF_HOME: join(cwd, 'hf'),
  };
  await run(python, [...args], { cwd, env, timeout: MOST_MS, maxBuffer: MOST_OUTPUT });
}

/** A harness by its own `main`, through harness.py. `rows`: the dataset's file. */
export const runHarness = (
  python: string,
  name: 'swebench' | 'swesmith',
  main: Record<string, unknown>,
  rows: string,
  cwd: string,
): Promise<void> =>
  runPython(python, [join(import.meta.dirname, 'harness.py'), name, JSON.stringify(main), rows], cwd);
