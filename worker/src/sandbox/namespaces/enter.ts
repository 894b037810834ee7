/** Starts one process in a sandbox: standard streams on real pipes, the exit code from bubblewrap's own report. */
import { type ChildProcess, spawn } from 'node:child_process';
import { close } from 'node:fs';
import type { Socket } from 'node:net';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { errorMessage, RolloutFailure, waitAtMost } from '@swefarm/shared';
import { Capture, execResult } from '../capture.ts';
import type { ExecOptions, ExecResult } from '../runtime.ts';
import type { OutputPipe } from './pipes.ts';
import { killNamespace } from './processes.ts';
import type { Supervisor } from './supervisor.ts';

const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
/** Output that children of an ended process hold open counts as over after this silence, */
const QUIET_MS = 20;
/** and at the latest after this time. */
const DRAIN_MS = 500;
const AFTER_KILL_MS = 5_000;

export type Entered = {
  stdin: Writable | null;
  output: Socket;
  /** Resolves when the process has ended, with its exit code; null when it was never started. */
  exit: Promise<number | null>;
  /** Resolves when it is in the sandbox's namespaces, or has ended. */
  inside: Promise<void>;
  /** Kills it and all that it started, in whatever group or session they are. */
  kill(): Promise<boolean>;
};

/**
 * @param argv the whole command line on the host
 * @param sandbox whose namespaces the command line enters; its files must stay open until the process is inside
 * Throws RolloutFailure sandbox_lost.
 */
export async function enterSandbox(
  argv: readonly string[],
  sandbox: Pick<Supervisor, 'namespace' | 'init' | 'alive'>,
  pipe: OutputPipe,
  stdin: boolean,
): Promise<Entered> {
  let child: ChildProcess;
  try {
    child = spawn(argv[0] as string, argv.slice(1), {
      stdio: [stdin ? 'pipe' : 'ignore', pipe.end, pipe.end, 'pipe'],
      env: ENVIRONMENT,
      cwd: '/',
    });
  } catch (error) {
    pipe.output.destroy();
    throw new RolloutFailure('sandbox_lost', `no process could be started: ${errorMessage(error)}`, {
      cause: error,
    });
  } finally {
    close(pipe.end);
  }
  child.stdin?.on('error', () => undefined);
  pipe.output.on('error', () => undefined);
  let status = '';
  const report = child.stdio[3] as Readable;
  report.setEncoding('utf8');
  report.on('data', (chunk: string) => {
    status += chunk;
  });
  report.on('error', () => undefined);
  const reported = new Promise<void>((resolve) => report.once('data', () => resolve()));
  const exit = new Promise<number | null>((resolve) => {
    // 'close' would also wait for the output, which children may hold open.
    let open = 2;
    const one = (): void => {
      if (--open > 0) return;
      const code = /"exit-code": (\d+)/.exec(status)?.[1];
      resolve(code === undefined ? null : Number(code));
    };
    child.once('exit', one);
    child.once('error', () => resolve(null));
    report.once('close', one);
  });
  return {
    stdin: child.stdin,
    output: pipe.output,
    exit,
    inside: Promise.race([reported, exit.then(() => undefined)]),
    async kill() {
      const namespace = /"mnt-namespace": (\d+)/.exec(status)?.[1];
      const all = namespace === undefined || (await killNamespace('mnt', `mnt:[${namespace}]`, sandbox));
      // Only this process is left, outside; what it holds dies with it.
      child.kill('SIGKILL');
      return all;
    },
  };
}

/** Runs an entered process to its end. @param onUnkillable is called when killing it did not work. */
export async function runEntered(
  entered: Entered,
  options: ExecOptions,
  onUnkillable: () => Promise<void>,
): Promise<ExecResult> {
  const capture = new Capture(options.maxOutputBytes);
  let lastOutputAt = performance.now();
  entered.output.on('data', (chunk: Buffer) => {
    lastOutputAt = performance.now();
    capture.push(chunk);
  });
  const closed = new Promise<void>((resolve) => entered.output.once('close', () => resolve()));
  if (options.stdin) entered.stdin?.end(options.stdin);
  try {
    const ending = await waitAtMost(entered.exit, options.timeoutMs, options.signal);
    if (ending.by !== 'itself') {
      if (!(await entered.kill())) await onUnkillable();
      await waitAtMost(entered.exit, AFTER_KILL_MS);
      options.signal.throwIfAborted();
    }
    await drained(closed, () => lastOutputAt);
    const exitCode = ending.by === 'itself' ? (ending.value ?? notStarted(capture.result().head)) : null;
    return execResult(capture, ending.by, exitCode);
  } finally {
    entered.output.destroy();
    entered.stdin?.destroy();
  }
}

/** The process's own output is in the pipe when it ends; waits until that is read, not for the output of its children. */
async function drained(closed: Promise<void>, lastOutputAt: () => number): Promise<void> {
  const until = performance.now() + DRAIN_MS;
  while (performance.now() < until) {
    const ending = await waitAtMost(closed, QUIET_MS);
    if (ending.by === 'itself' || performance.now() - lastOutputAt() > QUIET_MS) return;
  }
}

/** Like a shell: 127 when the program does not exist, 126 when it cannot be executed. */
function notStarted(output: Buffer): number {
  const message = output.toString('utf8', 0, 300).trim();
  if (!message.includes('execvp')) {
    throw new RolloutFailure(
      'sandbox_lost',
      `a process could not be started in the sandbox: ${message || 'it has ended'}`,
    );
  }
  return message.includes('No such file') ? 127 : 126;
}

/** One stream for both directions. Destroying it ends the process. */
export class EnteredStream extends Duplex {
  readonly #entered: Entered;

  constructor(entered: Entered) {
    super();
    this.#entered = entered;
    const { output } = entered;
    output.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) output.pause();
    });
    output.once('close', () => this.push(null));
  }

  override _read(): void {
    this.#entered.output.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const { stdin } = this.#entered;
    if (!stdin?.writable) done(new Error('the process has ended'));
    else stdin.write(chunk, encoding, done);
  }

  override _final(done: () => void): void {
    this.#entered.stdin?.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#entered.stdin?.destroy();
    this.#entered.output.destroy();
    done(error);
  }
}
