/**
 * Starts sandboxes, and the processes that enter them, through a small shell. A fork by the worker would stop the worker's main thread
 * for a time that grows with its memory. The streams of the processes are named pipes.
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
/** A process without a report within this time counts as not started. */
const START_TIMEOUT_MS = 30_000;
const END_TIMEOUT_MS = 5_000;
const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

export type Entry = {
  /** Files to which the process writes its id to join the sandbox's control groups. */
  joins: readonly string[];
  pidNamespaceFile: string;
  filter: string;
  /** RLIMIT_NPROC; null: unchanged. */
  nproc: number | null;
};

/** @param shell returns the command line of a bash with a script. @param folder belongs to this starter */
export async function openStarter(
  shell: (text: string) => string[],
  folder: string,
  pipes: Pipes,
): Promise<Starter> {
  await mkdir(folder, { mode: 0o700 });
  return new Starter([...shell(SCRIPT), folder], folder, pipes);
}

type Shell = ChildProcessByStdio<Writable, null, null>;

export class Starter implements AsyncDisposable {
  readonly #line: readonly string[];
  readonly #folder: string;
  readonly #pipes: Pipes;
  /** Null after the death of the shell; the next start opens another one. */
  #shell: Shell | null = null;
  /** Functions that end the waits for processes which are not running yet. All are called when the shell dies. */
  readonly #starting = new Set<() => void>();

  constructor(line: readonly string[], folder: string, pipes: Pipes) {
    this.#line = line;
    this.#folder = folder;
    this.#pipes = pipes;
    this.#open();
  }

  #open(): Shell {
    const [program = '', ...args] = this.#line;
    // The shell gets a separate session, because a shell with job control would take the terminal.
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
    // The shell must not prolong the life of the worker.
    shell.unref();
    (shell.stdin as Socket).unref();
    this.#shell = shell;
    return shell;
  }

  /** Starts a command line on the host. Rejects with the error of a system call. @param entry null: the process enters no sandbox */
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
    // `force`, because a worker that ends may have removed the folder.
    for (const path of paths) files.defer(() => rmSync(path, { force: true }));
    writeRequest(request, parts);
    files.defer(() => rmSync(request, { force: true }));
    const cancel = (): void => {
      if (this.#starting.has(release)) replaceRequest(request, [...streams, ...entering(null), 'true']);
    };
    // Each pipe is opened for reading and writing, so that each side can open its end without the other, and no end-of-file appears
    // before the process runs.
    for (const path of paths) {
      const both = openSync(path, O_RDWR | O_NONBLOCK);
      files.defer(() => closeSync(both));
    }
    const started = new StartedProcess(openEnds(output, report, input), cancel);
    const opened = files.move();
    const release = (): void => {
      clearTimeout(timer);
      if (this.#starting.delete(release)) opened.dispose();
    };
    const timer = setTimeout(release, START_TIMEOUT_MS);
    this.#starting.add(release);
    void started.running.then(release);
    shell.stdin.write(`${name}\n`);
    // If the shell died before `release` was added to `#starting`, nothing else would call `release`.
    if (this.#shell !== shell) release();
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const shell = this.#shell;
    this.#shell = null;
    if (shell === null) return;
    const ended = once(shell, 'exit').catch(() => undefined);
    shell.ref();
    shell.stdin.end();
    const ending = await waitAtMost(ended, END_TIMEOUT_MS);
    if (ending.by !== 'itself') shell.kill('SIGKILL');
  }
}

const writeRequest = (path: string, parts: readonly string[]): void =>
  writeFileSync(path, `${parts.join('\0')}\0`, { mode: 0o600 });

/** Replaces a request in one step: the shell reads either the old or the new one. If no file can be written, removes the request. */
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

type Ends = { stdin: Socket | null; output: Socket; report: Socket };

/** Opens this process's ends of the pipes. If an end cannot be opened, the opened ones are closed. */
function openEnds(output: string, report: string, input: string | undefined): Ends {
  using opened = new DisposableStack();
  const open = (path: string, flags: number): number => {
    const fd = openSync(path, flags | O_NONBLOCK);
    opened.defer(() => closeSync(fd));
    return fd;
  };
  const [outputEnd, reportEnd] = [open(output, O_RDONLY), open(report, O_RDONLY)];
  const inputEnd = input === undefined ? null : open(input, O_WRONLY);
  opened.move();
  return {
    output: new Socket({ fd: outputEnd, readable: true, writable: false }),
    report: new Socket({ fd: reportEnd, readable: true, writable: false }),
    stdin: inputEnd === null ? null : new Socket({ fd: inputEnd, readable: false, writable: true }),
  };
}

/** A process that the shell forks. The process's descriptor 3 is the report. */
export class StartedProcess {
  readonly stdin: Socket | null;
  readonly output: Socket;
  /** Resolves when the process runs, or could not be started. */
  readonly running: Promise<void>;
  /** Resolves when bubblewrap has reported the process that it started, or has ended. */
  readonly reported: Promise<void>;
  /** Resolves when the process and all heirs of its descriptor 3 have ended. */
  readonly ended: Promise<void>;
  /** If the process is not started yet, starts a process that ends at once instead. */
  readonly cancel: () => void;
  #report = '';
  #hasEnded = false;
  #isKilled = false;
  #identity: { pid: number; started: string } | null = null;

  constructor({ stdin, output, report }: Ends, cancel: () => void) {
    this.cancel = cancel;
    this.stdin = stdin;
    this.output = output;
    for (const stream of [stdin, output, report]) stream?.on('error', () => undefined);
    const running = Promise.withResolvers<void>();
    const reported = Promise.withResolvers<void>();
    report.setEncoding('utf8');
    report.on('data', (chunk: string) => {
      this.#report += chunk;
      if (this.#identity === null && this.#report.includes('\n')) this.#identify();
      running.resolve();
      // bubblewrap's report is the second line; it may arrive in pieces.
      if (this.#report.includes('}')) reported.resolve();
    });
    this.ended = new Promise((resolve) => {
      report.once('close', () => {
        this.#hasEnded = true;
        // The process has ended, so only this process has the pipe to stdin open.
        stdin?.destroy();
        resolve();
      });
    });
    this.running = Promise.race([running.promise, this.ended]);
    this.reported = Promise.race([reported.promise, this.ended]);
  }

  #identify(): void {
    const pid = Number.parseInt(this.#report, 10);
    const started = readProcessStat(pid)?.started;
    if (started !== undefined) this.#identity = { pid, started };
    if (this.#isKilled) this.kill();
  }

  alive(): boolean {
    return !this.#hasEnded;
  }

  reportText(): string {
    return this.#report;
  }

  /** Returns a number of bubblewrap's report; null if it is not reported. */
  reportedNumber(name: 'child-pid' | 'mnt-namespace' | 'exit-code'): number | null {
    const digits = new RegExp(`"${name}": (\\d+)`).exec(this.#report)?.[1];
    return digits === undefined ? null : Number(digits);
  }

  exitCode(): number | null {
    return this.reportedNumber('exit-code');
  }

  /** Sends SIGKILL. A process that is not started yet is cancelled; a process without a known id is killed when the id is known. */
  kill(): void {
    this.#isKilled = true;
    if (this.#hasEnded) return;
    if (this.#identity === null) {
      this.cancel();
      return;
    }
    const { pid, started } = this.#identity;
    // The kernel may have reused the id.
    if (readProcessStat(pid)?.started === started) killQuietly(pid);
  }
}

/**
 * Returns a function that builds the command line to run the text of a shell script on the host. The script first closes the
 * `inherited` descriptors.
 */
export function hostShell(path: string, inherited: readonly number[]): (text: string) => string[] {
  const closing = inherited.map((fd) => `exec ${fd}>&-\n`).join('');
  const options = path.endsWith('bash') ? ['--noprofile', '--norc'] : [];
  return (text) => [path, ...options, '-c', closing + text, 'swefarm'];
}
