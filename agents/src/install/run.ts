/** Runs programs of this machine that fetch, build and check bundles. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { childEnvironment, SwefarmError, withoutMiddle } from '@swefarm/shared';

const execute = promisify(execFile);
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;
const MOST_TEXT = 4_000;

type RunOptions = {
  signal: AbortSignal;
  /** Variables that replace the passed ones of this process. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Default: no limit. */
  timeoutMs?: number;
};

/**
 * Returns the standard output.
 *
 * @throws SwefarmError build_step if the program fails; ENOENT if it is not there; the reason of the signal
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  { signal, env = {}, cwd, timeoutMs = 0 }: RunOptions,
): Promise<string> {
  signal.throwIfAborted();
  try {
    const options = { signal, env: childEnvironment(env), maxBuffer: MOST_OUTPUT_BYTES, timeout: timeoutMs };
    return (await execute(program, args, cwd === undefined ? options : { ...options, cwd })).stdout;
  } catch (error) {
    signal.throwIfAborted();
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (code === 'ENOENT') throw error;
    const output = withoutMiddle(`${stdout}\n${stderr}`.trim(), MOST_TEXT);
    const shown = args.slice(0, 6).join(' ');
    throw new SwefarmError('build_step', `${program} ${shown} failed (${code}): ${output}`, { cause: error });
  }
}
