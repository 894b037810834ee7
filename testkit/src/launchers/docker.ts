/** A container engine for tests: a running one, else one that is started here and ends when its handle is disposed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { sleep, UnusableError } from '@swefarm/shared';

export type DockerEngine = AsyncDisposable & {
  readonly socketPath: string;
  /** False when the engine was already running; disposing then does nothing. */
  readonly started: boolean;
};

export type EnsureDockerOptions = {
  /** The socket of a running engine, and of one that is started. Default: DOCKER_HOST if a unix socket, else /var/run/docker.sock. */
  socketPath?: string;
  /** Folder of the engine's log and pid file. */
  stateDir?: string;
  /** Folder of images and containers; the engine's default when absent. */
  dataRoot?: string;
  /** More flags of dockerd, for example flags that isolate this engine from the engine of the machine. */
  flags?: readonly string[];
  /** Uses a network namespace of its own, because an engine that is configured without a bridge removes the machine's `docker0`. */
  apart?: boolean;
  /** Milliseconds to wait until a started engine answers, per try. */
  timeoutMs?: number;
  signal?: AbortSignal;
};

/** The second try is for machines without iptables or overlay: containers there have only their own loopback. */
const TRIES = [[], ['--iptables=false', '--bridge=none', '--storage-driver=vfs']];

/**
 * Returns a Docker engine that answers. Starts `dockerd` when none does, which needs root and Debian's `docker.io`.
 *
 * @throws UnusableError `engine_missing` without dockerd or root, `engine_start` with the end of its log when it does not answer
 */
export async function ensureDocker(options: EnsureDockerOptions = {}): Promise<DockerEngine> {
  const socketPath = options.socketPath ?? socketOfEnvironment();
  if (await answers(socketPath)) {
    return { socketPath, started: false, [Symbol.asyncDispose]: async () => undefined };
  }
  if (process.getuid?.() !== 0) {
    throw new UnusableError(
      'engine_missing',
      `no engine answers on ${socketPath}, and only root can start dockerd`,
    );
  }
  const stateDir = options.stateDir ?? join('/run', 'swefarm-dockerd');
  mkdirSync(stateDir, { recursive: true });
  let lastWords = '';
  for (const extra of TRIES) {
    const child = launch(socketPath, stateDir, options, [...(options.flags ?? []), ...extra]);
    const up = await waitUntilUp(child, socketPath, options.timeoutMs ?? 30_000, options.signal);
    if (up) {
      // The engine must not keep the caller's process alive.
      child.unref();
      return { socketPath, started: true, [Symbol.asyncDispose]: () => end(child) };
    }
    await end(child);
    options.signal?.throwIfAborted();
    lastWords = tail(join(stateDir, 'dockerd.log'));
  }
  throw new UnusableError('engine_start', `dockerd does not come up: ${lastWords}`);
}

/** True when an engine answers a ping on this socket within two seconds. */
export function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ socketPath, path: '/_ping', timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.on('timeout', () => ping.destroy());
    ping.on('error', () => resolve(false));
    ping.on('close', () => resolve(false));
    ping.end();
  });
}

function socketOfEnvironment(): string {
  const host = process.env.DOCKER_HOST ?? '';
  return host.startsWith('unix://') ? host.slice('unix://'.length) : '/var/run/docker.sock';
}

function launch(
  socketPath: string,
  stateDir: string,
  { dataRoot, apart }: EnsureDockerOptions,
  extra: string[],
): ChildProcess {
  const log = openSync(join(stateDir, 'dockerd.log'), 'a');
  const flags = ['-H', `unix://${socketPath}`, '--pidfile', join(stateDir, 'dockerd.pid'), ...extra];
  if (dataRoot) flags.push('--data-root', dataRoot, '--exec-root', join(stateDir, 'exec'));
  const [program, ...args] = apart ? ['unshare', '--net', 'dockerd', ...flags] : ['dockerd', ...flags];
  // `detached` starts a new process group, so that Ctrl-C in the terminal reaches only the tests, which then stop the engine cleanly.
  const child = spawn(program ?? 'dockerd', args, { stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  return child;
}

async function waitUntilUp(child: ChildProcess, socketPath: string, timeoutMs: number, signal?: AbortSignal) {
  let dead = false;
  child.once('exit', () => {
    dead = true;
  });
  child.once('error', (error: NodeJS.ErrnoException) => {
    dead = true;
    if (error.code === 'ENOENT') missing = true;
  });
  let missing = false;
  const until = performance.now() + timeoutMs;
  while (!dead && performance.now() < until && !signal?.aborted) {
    if (await answers(socketPath)) return true;
    await sleep(100);
  }
  if (missing) throw new UnusableError('engine_missing', 'there is no dockerd: apt-get install docker.io');
  return false;
}

/** Sends TERM, and KILL after 15 seconds; resolves when the process has ended. */
async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
  await gone;
  clearTimeout(timer);
}

function tail(path: string): string {
  if (!existsSync(path)) return 'it left no log';
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-3).join(' | ');
}
