/** Runs a program that builds a part of a bundle. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { childEnvironment, SwefarmError, withoutMiddle } from '@swefarm/shared';

const execute = promisify(execFile);
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;
const MOST_TEXT = 4_000;

/**
 * Returns the standard output.
 *
 * @param env variables that replace the passed ones of this process
 * @throws SwefarmError build_step if the program fails; ENOENT if it is not there; the reason of the signal
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  { signal, env = {} }: { signal: AbortSignal; env?: Readonly<Record<string, string>> },
): Promise<string> {
  try {
    const options = { signal, env: childEnvironment(env), maxBuffer: MOST_OUTPUT_BYTES };
    return (await execute(program, args, options)).stdout;
  } catch (error) {
    signal.throwIfAborted();
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (code === 'ENOENT') throw error;
    const said = withoutMiddle(`${stdout}\n${stderr}`.trim(), MOST_TEXT);
    throw new SwefarmError('build_step', `${program} ${args.slice(0, 6).join(' ')} failed (${code}): ${said}`, {
      cause: error,
    });
  }
}
