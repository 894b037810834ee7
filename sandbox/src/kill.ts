/** Kills the processes of one command from outside its shell. */
import { readFileSync } from 'node:fs';
import type { ExecOptions, ExecResult } from './runtime.ts';

const SCRIPT = readFileSync(new URL('./kill.sh', import.meta.url), 'utf8');
const KILL_TIMEOUT_MS = 10_000;

export type KillTarget = {
  /** Value of SWEFARM_COMMAND in the environment of the processes. */
  mark: string;
  /** Processes that are not killed. The children of the first one are the command's root processes. */
  spare: readonly number[];
  /** The container has its own process table, so a process that started later than the command belongs to the command. */
  privatePids: boolean;
};

/**
 * Kills a command's processes by process tree, process group, environment mark and, in a private process table, start time. If the
 * script cannot run (full process table, dead container), calls `killAll` and returns false. Throws errors of `killAll`.
 */
export async function killCommand(
  exec: (argv: readonly string[], options: ExecOptions) => Promise<ExecResult>,
  { mark, spare, privatePids }: KillTarget,
  killAll: () => Promise<void>,
): Promise<boolean> {
  const line = ['/bin/sh', '-c', SCRIPT, 'kill', mark, spare.join(' '), privatePids ? '1' : '0'];
  const options = {
    env: { LC_ALL: 'C' },
    timeoutMs: KILL_TIMEOUT_MS,
    maxOutputBytes: 4096,
    signal: AbortSignal.timeout(2 * KILL_TIMEOUT_MS),
  };
  const hasRun = await exec(line, options).then(
    ({ exitCode }) => exitCode === 0,
    () => false,
  );
  if (!hasRun) await killAll();
  return hasRun;
}
