/** Checks parser_image for `swefarm-worker doctor`: whether Python starts in the image, and whether the image can grade Multi-SWE. */

import type { Runtime } from '@swefarm/sandbox';
import { INTERNAL_SPEC } from '@swefarm/sandbox';
import { createLog, errorMessage, type Finding, type WorkerConfig } from '@swefarm/shared';
import { PROGRAM_LIMITS } from '../evaluation/program.ts';
import { chooseRuntime } from './runtimes.ts';

const subject = 'parser_image';
const START_MS = 60_000;
const PACKAGE = 'multi_swe_bench';
const SCRIPT = `import importlib.util as u; print("${PACKAGE}" if u.find_spec("${PACKAGE}") else "none")`;

/** Returns problems as findings; throws only the signal's reason. */
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
    return [await checkImage(runtime, name, signal)];
  } catch (error) {
    signal.throwIfAborted();
    return [{ status: 'fail', subject, detail: `${name}: ${errorMessage(error)}` }];
  }
}

async function checkImage(runtime: Runtime, name: string, signal: AbortSignal): Promise<Finding> {
  const image = await runtime.ensureImage(name, signal);
  await using container = await runtime.start({ ...INTERNAL_SPEC, image, limits: PROGRAM_LIMITS }, signal);
  const options = { cwd: '/', timeoutMs: START_MS, maxOutputBytes: 1_000, signal };
  const { exitCode, output } = await container.exec(['python3', '-c', SCRIPT], options);
  const printed = output.toString('utf8').trim();
  if (exitCode !== 0)
    return { status: 'fail', subject, detail: `${name}: python3 does not start: ${printed}` };
  return printed === PACKAGE
    ? { status: 'ok', subject, detail: `${name}: python3 and ${PACKAGE}` }
    : {
        status: 'warn',
        subject,
        detail: `${name}: python3; without the package multi-swe-bench, rows of Multi-SWE fail`,
      };
}
