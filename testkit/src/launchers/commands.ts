/** Starts the project's own commands as processes, as a user would: end-to-end tests never import the code that they test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export type CommandName = 'swefarm' | 'swefarm-worker' | 'swefarm-testkit';

const BIN: Record<CommandName, string> = {
  swefarm: `${ROOT}producer/bin/swefarm.mjs`,
  'swefarm-worker': `${ROOT}worker/bin/swefarm-worker.mjs`,
  'swefarm-testkit': `${ROOT}testkit/bin/swefarm-testkit.mjs`,
};

export type Started = {
  process: ChildProcess;
  pid: number;
  /** Everything printed so far. */
  stdout: () => string;
  stderr: () => string;
  /** Resolves with the exit code, or the signal's name. */
  exit: Promise<number | string>;
  /** Resolves when stdout or stderr matches; rejects when the process ends first. */
  until(pattern: RegExp): Promise<void>;
  kill(signal: NodeJS.Signals): void;
};

export type Account = { uid: number; gid: number };

/**
 * `env` is added to a bare environment, so that the caller's own configuration does not leak in.
 * @param as the user that runs the command; needs root. Another user can read this checkout and nothing else
 */
export function startCommand(
  name: CommandName,
  args: readonly string[],
  env: Record<string, string> = {},
  as?: Account,
): Started {
  const bare = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/root', LANG: 'C.UTF-8' };
  const child = spawn(process.execPath, [BIN[name], ...args], {
    cwd: ROOT,
    env: { ...bare, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...as,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exit = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return {
    process: child,
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    exit,
    until(pattern) {
      return new Promise((resolve, reject) => {
        const check = (): void => {
          if (!pattern.test(stdout + stderr)) return;
          child.stdout.off('data', check);
          child.stderr.off('data', check);
          resolve();
        };
        child.stdout.on('data', check);
        child.stderr.on('data', check);
        check();
        void exit.then((code) =>
          reject(new Error(`${name} ended with ${code} before ${pattern}:\n${stdout}${stderr}`)),
        );
      });
    },
    kill: (signal) => void child.kill(signal),
  };
}

export type Finished = { code: number | string; stdout: string; stderr: string };

/** Runs a command to its end. */
export async function runCommand(
  name: CommandName,
  args: readonly string[],
  env: Record<string, string> = {},
  as?: Account,
): Promise<Finished> {
  const started = startCommand(name, args, env, as);
  const code = await started.exit;
  return { code, stdout: started.stdout(), stderr: started.stderr() };
}
