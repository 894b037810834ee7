/** A folder and the processes started in it, with the interface of a container. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, readlink, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Duplex } from 'node:stream';
import { linearBackoff, newId, poll, RolloutFailure, waitAtMost } from '@swefarm/shared';
import { Capture, execResult } from '../capture.ts';
import { readRegularFile } from '../filechanges.ts';
import { joinedStream } from '../joinedstream.ts';
import { killCommand } from '../kill.ts';
import { Listeners } from '../listening/listen.ts';
import { allPids, killQuietly } from '../namespaces/processes.ts';
import {
  type Container,
  type ContainerSpec,
  type ContainerState,
  DEFAULT_PATH,
  type ExecOptions,
  type ExecResult,
  type Listener,
  type SandboxFile,
} from '../runtime.ts';

const CONTAINER_MARK = 'SWEFARM_CONTAINER';
const KILL_ROUNDS = 20;
/** Maximum wait for output after the process has ended, because a child may have the pipe open. */
const LAST_OUTPUT_MS = 250;
const AFTER_KILL_MS = 2_000;

export class HostContainer implements Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly workdir: string;
  readonly privatePids = false;
  readonly #folder: string;
  readonly #remove: () => Promise<void>;
  readonly #put = new Map<string, string>();
  #disposed: Promise<void> | null = null;
  readonly #listeners = new Listeners();

  constructor(id: string, spec: ContainerSpec, folder: string, remove: () => Promise<void>) {
    this.id = id;
    this.spec = spec;
    this.workdir = join(folder, 'work');
    this.#folder = folder;
    this.#remove = remove;
  }

  async open(argv: readonly string[], signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted();
    const child = this.#spawn(argv, this.#ownEnv(), this.workdir, 'pipe');
    await started(child);
    const { stdin, stdout } = child;
    if (!stdin || !stdout)
      throw new RolloutFailure('sandbox_lost', 'a process was started without its pipes');
    stdin.on('error', () => stdout.destroy());
    return joinedStream(stdout, stdin);
  }

  /** @param isKill true: the command kills another one, and is not killed in the same way */
  async exec(argv: readonly string[], options: ExecOptions, isKill = false): Promise<ExecResult> {
    options.signal.throwIfAborted();
    const mark = `${newId()}.exec`;
    const env = {
      ...(options.env ? { PATH: DEFAULT_PATH, ...options.env } : this.#ownEnv()),
      [CONTAINER_MARK]: this.id,
      SWEFARM_COMMAND: mark,
    };
    const child = this.#spawn(argv, env, options.cwd ?? this.workdir, options.stdin ? 'pipe' : 'ignore');
    await started(child);
    const capture = new Capture(options.maxOutputBytes);
    child.stdout?.on('data', (chunk: Buffer) => capture.push(chunk));
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.stdin);
    const ended = exited(child);
    const { by } = await waitAtMost(ended, options.timeoutMs, options.signal);
    if (by !== 'itself') {
      const target = { mark, spare: [], privatePids: false };
      const run = (line: readonly string[], own: ExecOptions) => this.exec(line, own, true);
      if (!isKill) await killCommand(run, target, () => this.killProcesses());
      // A negative id denotes the group of the process.
      if (child.pid) killQuietly(-child.pid);
      await waitAtMost(ended, AFTER_KILL_MS);
    }
    child.stdout?.destroy();
    options.signal.throwIfAborted();
    return execResult(capture, by, child.exitCode ?? (child.signalCode !== null ? 128 + 9 : null));
  }

  async listen(onConnection: (socket: Duplex) => void, signal: AbortSignal): Promise<Listener> {
    signal.throwIfAborted();
    return this.#listeners.listen('shared', onConnection, signal);
  }

  async putFiles(files: readonly SandboxFile[], signal: AbortSignal): Promise<void> {
    for (const { path, content, mode } of files) {
      signal.throwIfAborted();
      const target = this.#inside(path);
      await mkdir(dirname(target), { recursive: true });
      // An existing file or link is replaced, because a write through a link would change another file.
      await rm(target, { force: true });
      await writeFile(target, content, { mode: mode ?? 0o644 });
      if (target !== path) this.#put.set(path, target);
    }
  }

  async getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null> {
    signal.throwIfAborted();
    return readRegularFile(this.#put.get(path) ?? path, path, maxBytes).catch(
      (error: NodeJS.ErrnoException) => {
        if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES'].includes(error.code ?? '')) return null;
        throw error;
      },
    );
  }

  async state(): Promise<ContainerState> {
    return (await stat(this.#folder).catch(() => null)) ? 'running' : 'gone';
  }

  async wasFull(): Promise<null> {
    return null;
  }

  async oomKills(): Promise<null> {
    return null;
  }

  async killProcesses(): Promise<void> {
    await killMarked(this.id, this.#folder);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#listeners[Symbol.asyncDispose]().then(() => this.#remove());
    return this.#disposed;
  }

  /** Returns the path on the host. A path outside of the container's folder is moved below the substitute root. */
  #inside(path: string): string {
    const fromFolder = relative(this.#folder, path);
    return fromFolder.startsWith('..') ? join(this.#folder, 'root', path) : path;
  }

  #ownEnv(): Record<string, string> {
    const tmp = join(this.#folder, 'tmp');
    return { PATH: DEFAULT_PATH, HOME: tmp, TMPDIR: tmp, ...this.spec.env, [CONTAINER_MARK]: this.id };
  }

  #spawn(
    argv: readonly string[],
    env: Record<string, string>,
    cwd: string,
    stdin: 'pipe' | 'ignore',
  ): ChildProcess {
    // An argument that names a file below the substitute root is replaced by its real path.
    const line = argv.map((argument) => this.#put.get(argument) ?? argument);
    return spawn('/bin/sh', ['-c', 'exec "$@" 2>&1', 'sh', ...line], {
      cwd,
      env,
      detached: true,
      stdio: [stdin, 'pipe', 'ignore'],
    });
  }
}

async function started(child: ChildProcess): Promise<void> {
  await once(child, 'spawn').catch((error: Error) => {
    throw new RolloutFailure('sandbox_lost', `a process does not start: ${error.message}`, { cause: error });
  });
}

function exited(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve());
    child.once('exit', () => setTimeout(() => resolve(), LAST_OUTPUT_MS));
  });
}

/**
 * Kills the processes with the mark of container `id` until none remains, in at most {@link KILL_ROUNDS} rounds.
 * @param folder the container's folder: a process without an environment belongs to the container if it works there
 */
export async function killMarked(id: string, folder: string): Promise<void> {
  const home = await realpath(folder).catch(() => folder);
  const killAll = async (): Promise<boolean> => {
    const pids = await marked(id, home);
    for (const pid of pids) killQuietly(pid);
    return pids.length === 0;
  };
  await poll(killAll, { pauseMs: linearBackoff(10), tries: KILL_ROUNDS });
}

/**
 * Finds the processes with the mark. A process without an environment (during exec, or started by `env -i`) is identified by its
 * working folder. A zombie has neither.
 */
async function marked(id: string, folder: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await allPids()) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => null);
    const workdir = environment === '' ? await readlink(`/proc/${pid}/cwd`).catch(() => '') : '';
    if (environment?.includes(`${CONTAINER_MARK}=${id}\0`) || `${workdir}/`.startsWith(`${folder}/`))
      found.push(pid);
  }
  return found;
}
