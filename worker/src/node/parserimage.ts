/** What `swefarm-worker doctor` says of parser_image: whether its Python starts here, and whether it can read Multi-SWE. */

import type { Runtime } from '@swefarm/sandbox';
import { INTERNAL_SPEC } from '@swefarm/sandbox';
import { createLog, errorMessage, type Finding, type WorkerConfig } from '@swefarm/shared';
import { PROGRAM_LIMITS } from '../evaluation/program.ts';
import { chooseRuntime } from './runtimes.ts';

const subject = 'parser_image';
const START_MS = 60_000;
const PACKAGE = 'multi_swe_bench';
const LOOK = `import importlib.util as u; print("${PACKAGE}" if u.find_spec("${PACKAGE}") else "none")`;

/** Nothing is started when no image is named. Never throws for what it finds. */
export async function parserImageFindings(config: WorkerConfig, signal: AbortSignal): Promise<Finding[]> {
  const { parser_image: name } = config;
  if (name === null) {
    const detail =
      'not set: rows whose outcomes a program of the dataset reads (Multi-SWE, SWE-bench-Live) fail here';
    return [{ status: 'ok', subject, detail }];
  }
  try {
    const log = createLog({ ...config, log_level: 'silent' });
    const { runtime: chosen } = await chooseRuntime(config, log, signal);
    await using runtime = chosen;
    return [await tried(runtime, name, signal)];
  } catch (error) {
    signal.throwIfAborted();
    return [{ status: 'fail', subject, detail: `${name}: ${errorMessage(error)}` }];
  }
}

async function tried(runtime: Runtime, name: string, signal: AbortSignal): Promise<Finding> {
  const image = await runtime.ensureImage(name, signal);
  await using container = await runtime.start({ ...INTERNAL_SPEC, image, limits: PROGRAM_LIMITS }, signal);
  const options = { cwd: '/', timeoutMs: START_MS, maxOutputBytes: 1_000, signal };
  const { exitCode, output } = await container.exec(['python3', '-c', LOOK], options);
  const said = output.toString('utf8').trim();
  if (exitCode !== 0) return { status: 'fail', subject, detail: `${name}: python3 does not start: ${said}` };
  return said === PACKAGE
    ? { status: 'ok', subject, detail: `${name}: python3 and ${PACKAGE}` }
    : {
        status: 'warn',
        subject,
        detail: `${name}: python3; without the package multi-swe-bench, rows of Multi-SWE fail`,
      };
}
