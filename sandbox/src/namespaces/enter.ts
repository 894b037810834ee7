/** Waits for the end of one process that entered a sandbox; a timeout or an abort kills the process. bubblewrap reports the exit code. */
import { RolloutFailure, waitAtMost } from '@swefarm/shared';
import { Capture, execResult } from '../capture.ts';
import type { ExecOptions, ExecResult } from '../runtime.ts';
import { killNamespace } from './processes.ts';
import type { StartedProcess } from './starter.ts';
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

/** Waits for the end of a process in a sandbox. @param onUnkillable called if the process could not be killed */
export async function runEntered(
  entered: StartedProcess,
  sandbox: Supervisor,
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
    const { by } = await waitAtMost(entered.ended, options.timeoutMs, options.signal);
    if (by !== 'itself') {
      if (!(await killEntered(entered, sandbox))) await onUnkillable();
      await waitAtMost(entered.ended, AFTER_KILL_MS);
      options.signal.throwIfAborted();
    }
    await drained(closed, () => lastOutputAt);
    const exitCode = by === 'itself' ? (entered.exitCode() ?? notStarted(capture.result().head)) : null;
    return execResult(capture, by, exitCode);
  } finally {
    entered.output.destroy();
    entered.stdin?.destroy();
  }
}

/** Kills a process and its descendants, in any group or session. Returns false if some could not be killed. */
async function killEntered(entered: StartedProcess, sandbox: Supervisor): Promise<boolean> {
  entered.cancel();
  // If bubblewrap were killed before its report, the process that it has just started would remain.
  await waitAtMost(entered.reported, INSIDE_MS);
  const number = entered.reportedNumber('mnt-namespace');
  const { namespace, init } = sandbox;
  // The kernel may reuse the number of an ended namespace.
  const own = { namespace, init, alive: () => entered.alive() && sandbox.alive() };
  const killAll = async (): Promise<boolean> =>
    number === null || (await killNamespace('mnt', `mnt:[${number}]`, own));
  let all = await killAll();
  // A process that is entering the namespace is not found there yet, and may still start others. So the kill is repeated until
  // `entered` ends.
  for (let tries = 0; all && tries < MOST_TRIES && entered.alive(); tries++) {
    await waitAtMost(entered.ended, ENDING_MS);
    all = await killAll();
  }
  // Now only the process outside of the sandbox remains.
  entered.kill();
  return all;
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
