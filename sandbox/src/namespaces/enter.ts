/** Starts one process in a sandbox. The standard streams of the process are pipes, and bubblewrap reports the exit code. */
import type { Socket } from 'node:net';
import { Duplex, type Writable } from 'node:stream';
import { errorMessage, RolloutFailure, waitAtMost } from '@swefarm/shared';
import { Capture, execResult } from '../capture.ts';
import type { ExecOptions, ExecResult } from '../runtime.ts';
import { killNamespace } from './processes.ts';
import type { Entry, StartedProcess, Starter } from './starter.ts';
import type { Supervisor } from './supervisor.ts';

/** Output counts as complete if the process has ended and its children write nothing for this time. */
const QUIET_MS = 20;
/** Maximum time to read the output of children after the end of the process. */
const DRAIN_MS = 500;
const AFTER_KILL_MS = 5_000;
/** Maximum wait for a process to be inside before it is killed. */
const INSIDE_MS = 5_000;
const MOST_TRIES = 20;
const ENDING_MS = 50;

export type Entered = {
  stdin: Writable | null;
  output: Socket;
  /** Resolves with the exit code when the process has ended; null when the process was never started. */
  exit: Promise<number | null>;
  /** Resolves when the process is in the sandbox's namespaces, or has ended. */
  inside: Promise<void>;
  /** Kills the process and its descendants, in any group or session. Resolves with false if some could not be killed. */
  kill(): Promise<boolean>;
};

/**
 * Starts a process in a sandbox, whose namespace files must stay open until the process is inside.
 * @param argv the command line on the host, from nsenter on
 * @throws RolloutFailure sandbox_lost
 */
export async function enterSandbox(
  starter: Starter,
  argv: readonly string[],
  entry: Entry,
  sandbox: Pick<Supervisor, 'namespace' | 'init' | 'alive'>,
  stdin: boolean,
): Promise<Entered> {
  let started: StartedProcess;
  try {
    started = await starter.start(argv, entry, stdin);
  } catch (error) {
    throw new RolloutFailure('sandbox_lost', `no process could be started: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const { report } = started;
  const reported = new Promise<void>((resolve) => {
    // bubblewrap's report is the second line; it may arrive in pieces.
    report.on('data', () => started.reportText().includes('}') && resolve());
  });
  const exit = started.ended.then(() => {
    const code = /"exit-code": (\d+)/.exec(started.reportText())?.[1];
    return code === undefined ? null : Number(code);
  });
  const inside = Promise.race([reported, started.ended]);
  let hasEnded = false;
  void started.ended.then(() => {
    hasEnded = true;
  });
  // The kernel may reuse the number of an ended namespace.
  const own = { ...sandbox, alive: () => !hasEnded && sandbox.alive() };
  return {
    stdin: started.stdin,
    output: started.output,
    exit,
    inside,
    async kill() {
      started.cancel();
      // If bubblewrap were killed before its report, the process that it has just started would remain.
      await waitAtMost(inside, INSIDE_MS);
      const namespace = /"mnt-namespace": (\d+)/.exec(started.reportText())?.[1];
      const killAll = async (): Promise<boolean> =>
        namespace === undefined || (await killNamespace('mnt', `mnt:[${namespace}]`, own));
      let all = await killAll();
      // A process that is entering the namespace is not found there yet, and may still start others. So the kill is repeated until
      // `started` ends.
      for (let tries = 0; all && tries < MOST_TRIES && !hasEnded; tries++) {
        await waitAtMost(started.ended, ENDING_MS);
        all = await killAll();
      }
      // Now only the process outside of the sandbox remains.
      started.kill();
      return all;
    },
  };
}

/** Waits for the end of a process in a sandbox. @param onUnkillable called if the process could not be killed */
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

/** Waits until the process's own output is read, not for output of its children. */
async function drained(closed: Promise<void>, lastOutputAt: () => number): Promise<void> {
  const until = performance.now() + DRAIN_MS;
  while (performance.now() < until) {
    const ending = await waitAtMost(closed, QUIET_MS);
    if (ending.by === 'itself' || performance.now() - lastOutputAt() > QUIET_MS) return;
  }
}

/** Returns 127 if the program does not exist, 126 if it cannot be executed. Throws RolloutFailure sandbox_lost for another cause. */
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
