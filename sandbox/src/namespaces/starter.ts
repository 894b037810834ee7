/**
 * The process that starts a worker's sandboxes and what enters them. A fork takes as long as the memory of the forking process is
 * large, and for that time the worker's main thread stands still: so a small shell forks for it. What it starts has named pipes, which
 * each side opens by itself.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { newId, readProcessStat, waitAtMost } from '@swefarm/shared';
import type { Pipes } from './pipes.ts';
import { killQuietly } from './processes.ts';

const SCRIPT = readFileSync(new URL('./starter.sh', import.meta.url), 'utf8');
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
/** A process that does not tell within this time that it runs was not started. */
const START_TIMEOUT_MS = 30_000;
const END_TIMEOUT_MS = 5_000;
const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

/** What a process needs to enter a sandbox. */
export type Entry = {
  /** Files to which it writes its id to join the sandbox's control groups. */
  joins: readonly string[];
  pidNamespaceFile: string;
  /** The system call filter. */
  filter: string;
  /** Its process limit; null: none of its own. */
  nproc: number | null;
};

export type StartedProcess = {
  /** Null when it was not asked for. */
  stdin: Socket | null;
  /** Its stdout and stderr, of which it can open each again. */
  output: Socket;
  /** Its file 3: closed when it has ended, with all that were handed that file. Text so far: {@link StartedProcess.said}. */
  report: Socket;
  said(): string;
  /** Resolves when it runs, and also when it was never started. */
  running: Promise<void>;
  /** Resolves when its report is closed. */
  ended: Promise<void>;
  /** Unless the starter has come to it, something that ends at once is started in its place. */
  cancel(): void;
  /** Sends SIGKILL, unless it has ended. One that the starter has not come to is cancelled; another gets it when its id is known. */
  kill(): void;
};

/** Disposed of, it has ended: nothing of it is left in its folder. */
export type Starter = AsyncDisposable & {
  /**
   * Starts a command line of the host. Rejects with the error of a system call that failed. @param entry null: it enters no sandbox
   */
  start(argv: readonly string[], entry: Entry | null, stdin: boolean): Promise<StartedProcess>;
};

/** @param shell starts a bash with a script, to which arguments are added. @param folder is this starter's own */
export async function openStarter(
  shell: (text: string) => string[],
  folder: string,
  pipes: Pipes,
): Promise<Starter> {
  await mkdir(folder, { mode: 0o700 });
  return new ShellStarter([...shell(SCRIPT), folder], folder, pipes);
}

type Shell = ChildProcessByStdio<Writable, null, null>;

class ShellStarter implements Starter {
  readonly #line: readonly string[];
  readonly #folder: string;
  readonly #pipes: Pipes;
  /** Started with the first process, and again when it was killed. */
  #shell: Shell | null = null;
  /** What ends the wait for processes that a dead shell has not started. */
  readonly #starting = new Set<() => void>();

  constructor(line: readonly string[], folder: string, pipes: Pipes) {
    this.#line = line;
    this.#folder = folder;
    this.#pipes = pipes;
    this.#open();
  }

  #open(): Shell {
    const [program = '', ...args] = this.#line;
    // A session of its own: a shell with job control would take the terminal.
    const shell = spawn(program, args, {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: ENVIRONMENT,
      cwd: '/',
      detached: true,
    });
    const lost = (): void => {
      if (this.#shell === shell) this.#shell = null;
      for (const release of this.#starting) release();
    };
    shell.once('exit', lost);
    shell.once('error', lost);
    shell.stdin.on('error', () => undefined);
    // It ends with the worker, and keeps it from ending no more than a timer would.
    shell.unref();
    (shell.stdin as Socket).unref();
    this.#shell = shell;
    return shell;
  }

  async start(argv: readonly string[], entry: Entry | null, stdin: boolean): Promise<StartedProcess> {
    const paths = await this.#pipes.take(stdin ? 3 : 2);
    const shell = this.#shell ?? this.#open();
    const name = newId();
    const request = join(this.#folder, name);
    const [output, report, input] = paths as [string, string, string?];
    const streams = [input ?? '/dev/null', output, report];
    const parts = [...streams, ...entering(entry), ...argv];
    if (parts.some((part) => part.includes('\0'))) throw new Error('a command line cannot contain NUL');
    using files = new DisposableStack();
    // They may be gone: when a worker ends, before the last process that removes a sandbox.
    for (const path of paths) files.defer(() => rmSync(path, { force: true }));
    writeRequest(request, parts);
    files.defer(() => rmSync(request, { force: true }));
    const cancel = (): void => {
      if (this.#starting.has(release)) replaceRequest(request, [...streams, ...entering(null), 'true']);
    };
    // Opened for both, so that each side can open its end without the other, and no end is seen before the process runs.
    for (const path of paths) {
      const both = openSync(path, O_RDWR | O_NONBLOCK);
      files.defer(() => closeSync(both));
    }
    const started = new Channel(openEnds(output, report, input), cancel);
    const held = files.move();
    const release = (): void => {
      clearTimeout(timer);
      if (this.#starting.delete(release)) held.dispose();
    };
    const timer = setTimeout(release, START_TIMEOUT_MS);
    this.#starting.add(release);
    void started.running.then(release);
    shell.stdin.write(`${name}\n`);
    // It died since, and its end was told of before.
    if (this.#shell !== shell) release();
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const shell = this.#shell;
    this.#shell = null;
    if (shell === null) return;
    const ended = once(shell, 'exit').catch(() => undefined);
    // Now it is waited for.
    shell.ref();
    shell.stdin.end();
    const ending = await waitAtMost(ended, END_TIMEOUT_MS);
    if (ending.by !== 'itself') shell.kill('SIGKILL');
  }
}

const writeRequest = (path: string, parts: readonly string[]): void =>
  writeFileSync(path, `${parts.join('\0')}\0`, { mode: 0o600 });

/** The starter finds one or the other, whole; where nothing can be written, none. */
function replaceRequest(path: string, parts: readonly string[]): void {
  const draft = `${path}.new`;
  try {
    writeRequest(draft, parts);
    renameSync(draft, path);
  } catch {
    for (const one of [draft, path]) rmSync(one, { force: true });
  }
}

const entering = (entry: Entry | null): string[] =>
  entry
    ? ['enter', entry.joins.join(' '), entry.pidNamespaceFile, entry.filter, String(entry.nproc ?? '')]
    : [''];

/** This process's ends; where one cannot be opened, none stays open. */
function openEnds(
  output: string,
  report: string,
  input: string | undefined,
): Pick<StartedProcess, 'stdin' | 'output' | 'report'> {
  using opened = new DisposableStack();
  const open = (path: string, flags: number): number => {
    const fd = openSync(path, flags | O_NONBLOCK);
    opened.defer(() => closeSync(fd));
    return fd;
  };
  const [said, reported] = [open(output, O_RDONLY), open(report, O_RDONLY)];
  const given = input === undefined ? null : open(input, O_WRONLY);
  opened.move();
  return {
    output: new Socket({ fd: said, readable: true, writable: false }),
    report: new Socket({ fd: reported, readable: true, writable: false }),
    stdin: given === null ? null : new Socket({ fd: given, readable: false, writable: true }),
  };
}

class Channel implements StartedProcess {
  readonly stdin: Socket | null;
  readonly output: Socket;
  readonly report: Socket;
  readonly running: Promise<void>;
  readonly ended: Promise<void>;
  #said = '';
  #hasEnded = false;
  #isKilled = false;
  /** Of the process, with its start time. */
  #identity: { pid: number; started: string } | null = null;
  readonly cancel: () => void;

  constructor(
    { stdin, output, report }: Pick<StartedProcess, 'stdin' | 'output' | 'report'>,
    cancel: () => void,
  ) {
    this.cancel = cancel;
    this.stdin = stdin;
    this.output = output;
    this.report = report;
    for (const stream of [stdin, output, report]) stream?.on('error', () => undefined);
    report.setEncoding('utf8');
    this.ended = new Promise((resolve) => {
      report.once('close', () => {
        this.#hasEnded = true;
        // Nobody reads it any more, and its file is this process's to close.
        stdin?.destroy();
        resolve();
      });
    });
    const runs = new Promise<void>((resolve) => {
      report.on('data', (chunk: string) => {
        this.#said += chunk;
        if (this.#identity === null && this.#said.includes('\n')) this.#identify();
        resolve();
      });
    });
    this.running = Promise.race([runs, this.ended]);
  }

  #identify(): void {
    const pid = Number.parseInt(this.#said, 10);
    const started = readProcessStat(pid)?.started;
    if (started !== undefined) this.#identity = { pid, started };
    if (this.#isKilled) this.kill();
  }

  said(): string {
    return this.#said;
  }

  kill(): void {
    this.#isKilled = true;
    if (this.#hasEnded) return;
    if (this.#identity === null) {
      this.cancel();
      return;
    }
    const { pid, started } = this.#identity;
    // Its number may have been given to another process since.
    if (readProcessStat(pid)?.started === started) killQuietly(pid);
  }
}

/** The command line that runs one of the farm's host scripts; it first closes inherited files that must not be passed on. */
export function hostShell(path: string, inherited: readonly number[]): (text: string) => string[] {
  const closing = inherited.map((fd) => `exec ${fd}>&-\n`).join('');
  const options = path.endsWith('bash') ? ['--noprofile', '--norc'] : [];
  return (text) => [path, ...options, '-c', closing + text, 'swefarm'];
}
