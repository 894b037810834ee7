/** Programs from PyPI that the farm is compared with, in environments that later runs reuse. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run } from '@swefarm/testkit';

const CACHE = resolve(import.meta.dirname, '../.swefarm/cache');
const HARNESSES = ['swebench==4.1.0', 'swesmith==0.0.9'];
const LIMITS = { timeout: 60 * 60_000, maxBuffer: 64 * 1024 ** 2 };

/** Returns the folder of a Python environment with these packages. `name` names their versions. @throws Error of pip */
export async function ensureVenv(name: string, packages: readonly string[]): Promise<string> {
  const venv = join(CACHE, name);
  if (existsSync(join(venv, '.complete'))) return venv;
  console.error(`installing ${packages.join(' ')} into ${venv}`);
  await run('python3', ['-m', 'venv', '--clear', venv]);
  await run(join(venv, 'bin/pip'), ['install', '-q', ...packages], LIMITS);
  await writeFile(join(venv, '.complete'), '');
  return venv;
}

/** Returns a Python that has both harnesses. */
export const ensureHarnesses = async (): Promise<string> =>
  join(await ensureVenv('harnesses-4.1.0-0.0.9', HARNESSES), 'bin/python');

/** Runs a program in `cwd`, where it writes its logs and reports, without access to a hub. @throws Error with its output */
export async function runProgram(
  program: string,
  args: readonly string[],
  cwd: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<void> {
  await mkdir(cwd, { recursive: true });
  const offline = { HF_HUB_OFFLINE: '1', HF_DATASETS_OFFLINE: '1', HF_HOME: join(cwd, 'hf') };
  await run(program, [...args], { cwd, env: { ...process.env, ...offline, ...variables }, ...LIMITS });
}

/** Runs a harness by its own `main`, through harness.py. `rows`: the file of the dataset. */
export const runHarness = (
  python: string,
  name: 'swebench' | 'swesmith',
  main: Record<string, unknown>,
  rows: string,
  cwd: string,
): Promise<void> =>
  runProgram(python, [join(import.meta.dirname, 'harness.py'), name, JSON.stringify(main), rows], cwd);

/** Arguments of `run_evaluation` of swebench 4.1.0 on local images. */
export const swebenchArguments = (given: {
  dataset: string;
  predictions: string;
  workers: number;
  run: string;
  namespace: string;
}): Record<string, unknown> => ({
  ...{ dataset_name: given.dataset, split: 'test', instance_ids: [], predictions_path: given.predictions },
  ...{ max_workers: given.workers, force_rebuild: false, cache_level: 'instance', clean: false },
  ...{ open_file_limit: 4096, run_id: given.run, timeout: 1800, namespace: given.namespace },
  ...{ rewrite_reports: false, modal: false },
});
