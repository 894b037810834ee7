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

/** Its disposal stops the process. */
export type Started = AsyncDisposable & {
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
  /** Sends SIGTERM and resolves as `exit`. */
  stop(): Promise<number | string>;
};

export type Account = { uid: number; gid: number };

/**
 * Shows checkout and Node to another user at a place that every user may enter: a folder above them may have mode 0700.
 * The mounts exist in the command's own mount namespace only. Arguments: checkout, Node, uid, gid, file of the command, its arguments.
 */
const AS_USER = `mount -t tmpfs -o mode=0755 swefarm-test /mnt
mkdir /mnt/checkout; touch /mnt/node
mount --bind "$1" /mnt/checkout; mount --bind "$2" /mnt/node
cd /mnt/checkout
uid=$3; gid=$4; file=$5; shift 5
exec setpriv --reuid="$uid" --regid="$gid" --clear-groups /mnt/node "/mnt/checkout/$file" "$@"`;

function commandAs({ uid, gid }: Account, name: CommandName): string[] {
  const file = BIN[name].slice(ROOT.length);
  return [
    ...['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', AS_USER, 'sh'],
    ...[ROOT, process.execPath, String(uid), String(gid), file],
  ];
}

/**
 * `env` is added to a bare environment, so that the caller's own configuration does not leak in.
 * @param as the user that runs the command; needs root
 */
export function startCommand(
  name: CommandName,
  args: readonly string[],
  env: Record<string, string> = {},
  as?: Account,
): Started {
  const bare = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/root', LANG: 'C.UTF-8' };
  const [program = '', ...line] = [...(as ? commandAs(as, name) : [process.execPath, BIN[name]]), ...args];
  const child = spawn(program, line, {
    cwd: ROOT,
    env: { ...bare, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
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
    stop() {
      child.kill('SIGTERM');
      return exit;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}

/** The URL of a gateway that `swefarm serve` has started, once it answers there. */
export async function gatewayUrl(serving: Started): Promise<string> {
  await serving.until(/"url":"[^"]+"/);
  return JSON.parse(serving.stdout().split('\n')[0] ?? '').url;
}

export type Finished = { code: number | string; stdout: string; stderr: string };

/**
 * Splits a command line at white space, as a shell does. A value is one word or part of one, whatever is in it; a list of values is as many
 * words.
 */
export function words(
  texts: TemplateStringsArray,
  ...values: readonly (string | number | readonly string[])[]
): string[] {
  const found: string[] = [];
  let open: string | null = null;
  for (const [at, text] of texts.entries()) {
    const [rest = '', ...next] = text.split(/\s+/);
    if (rest !== '') open = (open ?? '') + rest;
    for (const word of next) {
      if (open !== null) found.push(open);
      open = word === '' ? null : word;
    }
    const value = values[at];
    if (typeof value === 'object') found.push(...value);
    else if (value !== undefined) open = (open ?? '') + value;
  }
  return open === null ? found : [...found, open];
}

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
