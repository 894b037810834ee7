/** Runs a command by an exec of the engine: merged and capped output, exit code from the engine, time limit by the host's clock. */
import type { Duplex } from 'node:stream';
import { linearBackoff, newId, poll, RolloutFailure, waitAtMost } from '@swefarm/shared';
import type Docker from 'dockerode';
import { Capture, execResult } from '../capture.ts';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { killCommand } from '../kill.ts';
import { DEFAULT_PATH, type ExecOptions, type ExecResult } from '../runtime.ts';
import { lateFailure, requireReadable } from './accounts.ts';
import { isLate, killWithoutEngine, NOT_YET_COMMAND } from './deadline.ts';
import { createDemuxer } from './demux.ts';
import { answerAbout, requireFreeStarts } from './stoppedstarts.ts';

/** Interval of the checks whether the process of a silent exec has ended while a child still has its output open. */
const POLL_MS = 1_000;
const AFTER_KILL_MS = 5_000;

/**
 * Starts an exec and returns its raw, framed stream. Throws RolloutFailure `engine_unreachable` if the engine does not answer within
 * `answerMs` (default two minutes), `sandbox_lost` if code in the container blocks the engine.
 */
export async function startExec(
  container: Docker.Container,
  argv: readonly string[],
  options: { cwd?: string; env?: string[]; user?: string; stdin: boolean; answerMs?: number },
): Promise<{ exec: Docker.Exec; socket: Duplex }> {
  const { answerMs } = options;
  const doing = `starting ${argv[0]} in a container`;
  try {
    requireFreeStarts(container);
    await requireReadable(container, answerMs);
    const exec = await answerAbout(
      container,
      container.exec({
        Cmd: [...argv],
        AttachStdin: options.stdin,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        ...(options.env ? { Env: options.env } : {}),
        ...(options.cwd ? { WorkingDir: options.cwd } : {}),
        ...(options.user ? { User: options.user } : {}),
      }),
      answerMs,
    );
    const starting = exec.start({ hijack: true, stdin: true });
    const socket = await answerAbout(container, starting, answerMs).catch((error: unknown) => {
      starting.then((late) => late.destroy()).catch(() => undefined);
      throw error;
    });
    return { exec, socket: socket as Duplex };
  } catch (error) {
    if (isLate(error)) {
      await killWithoutEngine(container.id, NOT_YET_COMMAND);
      throw await lateFailure(container, error, doing, answerMs);
    }
    throw engineFailure(error, 'sandbox_lost', doing);
  }
}

/**
 * Returns a command line that replaces the environment by a given one, ends stdin without a half-closed stream, and uses one pipe for
 * stdout and stderr, because two streams of the engine would lose their order.
 */
function wrapped(argv: readonly string[], options: ExecOptions, mark: string): string[] {
  let line = [...argv];
  if (options.env) {
    const env = { PATH: DEFAULT_PATH, ...options.env, SWEFARM_COMMAND: mark };
    line = ['/usr/bin/env', '-i', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...line];
  }
  if (options.stdin?.length) {
    return ['/bin/sh', '-c', 'head -c "$0" | "$@" 2>&1', String(options.stdin.length), ...line];
  }
  return ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...line];
}

/** Runs a command and waits for its end. @param killAll kills all processes; null: the command is a kill itself */
export async function runExec(
  container: Docker.Container,
  argv: readonly string[],
  options: ExecOptions,
  killAll: (() => Promise<void>) | null,
): Promise<ExecResult> {
  options.signal.throwIfAborted();
  const mark = `${newId()}.exec`;
  const { exec, socket } = await startExec(container, wrapped(argv, options, mark), {
    ...(options.cwd ? { cwd: options.cwd } : {}),
    ...(options.user ? { user: options.user } : {}),
    env: [`SWEFARM_COMMAND=${mark}`],
    stdin: Boolean(options.stdin?.length),
  });
  const capture = new Capture(options.maxOutputBytes);
  const demux = createDemuxer((bytes) => capture.push(bytes));
  const ended = new Promise<void>((resolve) => {
    socket.on('data', demux);
    for (const event of ['end', 'close', 'error']) socket.once(event, () => resolve());
  });
  if (options.stdin?.length) socket.write(options.stdin);
  const watch = watchEnd(container, exec, ended);
  try {
    const { by } = await waitAtMost(watch.done, options.timeoutMs, options.signal);
    if (by !== 'itself') {
      // Code in the sandbox can stop runc or crun before it executes the command. Until that process ends, the engine answers no call
      // about the container, so no kill would have an effect.
      await killWithoutEngine(container.id, NOT_YET_COMMAND);
      const target = { mark, spare: [], privatePids: true };
      if (killAll) await killCommand((line, own) => runExec(container, line, own, null), target, killAll);
      await waitAtMost(watch.done, AFTER_KILL_MS);
      options.signal.throwIfAborted();
    }
    requireFreeStarts(container);
    return execResult(capture, by, by === 'itself' ? await exitCode(container, exec) : null);
  } finally {
    watch.stop();
    socket.destroy();
  }
}

/** `done` resolves when the stream ends or the engine reports the end of the process, because a child may leave the stream open. */
function watchEnd(
  container: Docker.Container,
  exec: Docker.Exec,
  ended: Promise<void>,
): { done: Promise<void>; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const exited = new Promise<void>((resolve) => {
    let seen = false;
    const ask = async () => {
      const running = await answerAbout(container, exec.inspect()).then(
        (state) => state.Running,
        () => true,
      );
      // The engine must report the end twice, because the last output of the process may still be in transit.
      if (!running && seen) return resolve();
      seen = !running;
      if (!stopped) timer = setTimeout(() => void ask(), seen ? POLL_MS / 4 : POLL_MS);
    };
    timer = setTimeout(() => void ask(), POLL_MS);
  });
  return {
    done: Promise.race([ended, exited]),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Returns the engine's exit code. Polls, because the stream may end before the engine has recorded the exit. */
async function exitCode(container: Docker.Container, exec: Docker.Exec): Promise<number> {
  const look = async (): Promise<number | null> => {
    const { Running, ExitCode } = await answerAbout(container, exec.inspect());
    return Running ? null : ExitCode;
  };
  const code = await poll(look, { pauseMs: linearBackoff(5), tries: 50 }).catch((error: unknown) => {
    // A restarted engine may have kept its containers running (live-restore), but no longer knows the commands in the containers.
    const otherwise = statusCode(error) === 404 ? 'engine_unreachable' : 'sandbox_lost';
    throw engineFailure(error, otherwise, 'asking for an exit code');
  });
  if (code === null)
    throw new RolloutFailure('sandbox_lost', 'the stream of a command broke while the command was running');
  return code;
}
