/** The harnesses of others from PyPI, in an environment that later runs reuse. */
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ensureVenv } from './venv.ts';

const run = promisify(execFile);
const PACKAGES = ['swebench==4.1.0', 'swesmith==0.0.9'];
const MOST_MS = 60 * 60_000;
const MOST_OUTPUT = 64 * 1024 ** 2;

/** A Python that has both harnesses. */
export async function ensureHarnesses(): Promise<string> {
  return join(await ensureVenv({ name: 'harnesses-4.1.0-0.0.9', installs: [PACKAGES] }), 'bin/python');
}

/** Runs it in `cwd`, which gets its logs and reports; nothing is looked for on a hub. @throws Error with its last output */
export const runPython = (python: string, args: readonly string[], cwd: string): Promise<void> =>
  runProgram(python, args, cwd, {});

/** The same of any program of an environment, with more variables. @throws Error with its last output */
export async function runProgram(
  program: string,
  args: readonly string[],
  cwd: string,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(cwd, { recursive: true });
  const env = {
    ...process.env,
    HF_HUB_OFFLINE: '1',
    HF_DATASETS_OFFLINE: '1',
    HF_HOME: join(cwd, 'hf'),
    ...variables,
  };
  await run(program, [...args], { cwd, env, timeout: MOST_MS, maxBuffer: MOST_OUTPUT });
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
