/** Programs of others from PyPI, each in an environment of its own that later runs reuse. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
const MOST_OUTPUT = 64 * 1024 ** 2;

export type Packages = {
  /** Of the folder; it names the versions. */
  name: string;
  /** What pip is asked for, one call after the other: a later one may replace what an earlier one brought. */
  installs: readonly (readonly string[])[];
  /** The interpreter; absent: python3. */
  python?: string;
};

/** Folder of the environment. @throws Error of pip, or when the interpreter is not there */
export async function ensureVenv({ name, installs, python = 'python3' }: Packages): Promise<string> {
  const venv = join(ROOT, '.swefarm/cache', name);
  if (existsSync(join(venv, '.complete'))) return venv;
  console.error(`installing ${installs.flat().join(' ')} into ${venv}`);
  await run(python, ['-m', 'venv', '--clear', venv]);
  for (const packages of installs)
    await run(join(venv, 'bin/pip'), ['install', '-q', ...packages], { maxBuffer: MOST_OUTPUT });
  await writeFile(join(venv, '.complete'), '');
  return venv;
}
