/**
 * Runs a program of the dataset that reads the outcomes of tests. The program is untrusted: it runs in a separate container, without
 * network and with small limits, and only its output is read. It needs no evaluation lock and no thread.
 */
import { posix } from 'node:path';
import type { ProgramEnd } from '@swefarm/grading';
import {
  type Container,
  type ExecResult,
  isCausedByCode,
  type Limits,
  type Removals,
  type Runtime,
} from '@swefarm/sandbox';
import { errorMessage, type ProgramSource, RolloutFailure, SwefarmError, sleepAtMost } from '@swefarm/shared';

/** Limits of one program; the limits of the run apply too. */
export const PROGRAM_LIMITS: Limits = { cpus: 1, memoryBytes: 1024 ** 3, pids: 64, diskBytes: null };
const MOST_SECONDS = 600;
/** Maximum bytes of output; larger output is refused, not cut. */
const OUTPUT_BYTES = 16 * 1024 * 1024;
const MESSAGE_BYTES = 16 * 1024;
const DISK_BYTES = 256 * 1024 * 1024;
const DISK_POLL_MS = 500;
const END_MS = 60_000;
const INPUTS = '/inputs';
const HOME = '/';
/** Runs a command with a limit on the size of each file; `ulimit -f` counts in units of 512 bytes. */
const LIMITED = `ulimit -f ${DISK_BYTES / 512} && exec "$@"`;
const WITHOUT_ERRORS = `ulimit -f ${DISK_BYTES / 512} && exec "$@" 2>/dev/null`;

export type ProgramDeps = {
  /** Starts a new container of this image, in which nothing has run. */
  startProgram: (image: ProgramSource['image']) => Promise<Container>;
  removals: Removals;
  runtime: Pick<Runtime, 'diskFree'>;
  signal: AbortSignal;
};

type ProgramInputs = { log: Buffer; files: Readonly<Record<string, string>> };

/** Returns the program's output, or how it failed. Throws RolloutFailure when the node is at fault, and errors of `startProgram`. */
export async function runProgram(
  source: ProgramSource,
  inputs: ProgramInputs,
  deps: ProgramDeps,
): Promise<ProgramEnd> {
  const container = await deps.startProgram(source.image);
  try {
    await container.putFiles(filesOf(source, inputs), deps.signal);
    const fresh = () => deps.startProgram(source.image);
    const suspect = { container, runtime: deps.runtime, fresh, diskBytes: DISK_BYTES, signal: deps.signal };
    try {
      return await runIn(container, source, deps.signal);
    } catch (error) {
      if (!(await isCausedByCode(error, suspect))) throw error;
      return { failed: `it broke its container: ${errorMessage(error)}` };
    }
  } finally {
    await deps.removals.remove(container);
  }
}

function filesOf({ files }: ProgramSource, inputs: ProgramInputs) {
  const given = Object.entries(inputs.files).map(([path, content]) => ({
    path: posix.join(INPUTS, posix.basename(path)),
    content: Buffer.from(content),
    mode: 0o644,
  }));
  return [
    ...Object.entries(files).map(([path, text]) => ({ path, content: Buffer.from(text), mode: 0o755 })),
    ...given.filter(({ path }) => path !== `${INPUTS}/log`),
    { path: `${INPUTS}/log`, content: inputs.log, mode: 0o644 },
  ];
}

async function runIn(container: Container, source: ProgramSource, signal: AbortSignal): Promise<ProgramEnd> {
  const seconds = Math.min(source.timeout, MOST_SECONDS);
  using disk = watchDiskUse(container, signal);
  const script = source.output === undefined ? WITHOUT_ERRORS : LIMITED;
  const running = container.exec(['/bin/sh', '-c', script, 'sh', ...source.argv], {
    cwd: HOME,
    timeoutMs: seconds * 1000,
    maxOutputBytes: source.output === undefined ? OUTPUT_BYTES : MESSAGE_BYTES,
    signal: disk.signal,
  });
  const result = await running.catch((error: unknown) => {
    if (disk.signal.aborted) return null;
    throw error;
  });
  signal.throwIfAborted();
  if (result === null || disk.signal.aborted)
    return { failed: `it wrote more than ${DISK_BYTES / 1024 ** 2} MiB` };
  if (result.timedOut) return { failed: `it did not end in ${seconds} s` };
  if (result.exitCode !== 0) return { failed: await howItEnded(container, result) };
  if (source.output === undefined) {
    if (result.truncated) return { failed: `it printed more than ${OUTPUT_BYTES / 1024 ** 2} MiB` };
    return { output: result.output.toString('utf8') };
  }
  return readOutput(container, source.output, signal);
}

/** Reads the output file from outside after every process of the container has ended, so that no process can change the file. */
async function readOutput(container: Container, path: string, signal: AbortSignal): Promise<ProgramEnd> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(END_MS)]);
  const remains = (await container.end?.(limit)) ?? container;
  try {
    const content = await remains.getFile(path, OUTPUT_BYTES, limit);
    if (content === null) return { failed: `it left no regular file ${path}` };
    return { output: content.toString('utf8') };
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.code !== 'file_too_large') throw error;
    return { failed: `${path} is larger than ${OUTPUT_BYTES / 1024 ** 2} MiB` };
  }
}

async function howItEnded(container: Container, { exitCode, output }: ExecResult): Promise<string> {
  const state = await container.state();
  if (state === 'own_limit' || ((await container.oomKills()) ?? 0) > 0)
    return `it went over its limit of ${PROGRAM_LIMITS.memoryBytes / 1024 ** 2} MiB of memory or ${PROGRAM_LIMITS.pids} processes`;
  if (state !== 'running')
    throw new RolloutFailure('evaluation_lost', `the container of the program is ${state}`);
  const last = output.toString('utf8').trim().split('\n').at(-1)?.trim().slice(0, 160) ?? '';
  return `it ended with ${exitCode === null ? 'a signal' : `exit code ${exitCode}`}${last === '' ? '' : `: ${last}`}`;
}

/** Returns a signal that aborts with `signal`, or when the container has written more than {@link DISK_BYTES}. */
function watchDiskUse(container: Container, signal: AbortSignal): Disposable & { signal: AbortSignal } {
  const over = new AbortController();
  const done = new AbortController();
  const watch = async (): Promise<void> => {
    while (!done.signal.aborted && !over.signal.aborted) {
      await sleepAtMost(DISK_POLL_MS, done.signal);
      const use = await container.diskUse?.().catch(() => null);
      if (use && use.bytes > DISK_BYTES) over.abort(new Error('too much was written'));
    }
  };
  if (container.diskUse) void watch();
  return { signal: AbortSignal.any([signal, over.signal]), [Symbol.dispose]: () => done.abort() };
}
