/** Writes files into a sandbox with programs of the host. Code inside cannot replace these programs. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { RolloutFailure } from '@swefarm/shared';
import { Capture } from '../capture.ts';
import { DEFAULT_PATH, type NewFolder, type SandboxFile } from '../runtime.ts';
import { putFiles, type Run } from './putfiles.ts';
import type { Supervisor } from './supervisor.ts';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 4096;
const REPLACE = readFileSync(new URL('./replacefolders.sh', import.meta.url), 'utf8');

/**
 * Replaces folders of a sandbox. The root folder of process 1 contains the sandbox's tree at `tree`, and programs of the host. Throws
 * RolloutFailure `node_disk` or `sandbox_lost`.
 */
export async function replaceFolders(
  { supervisor, root, tree }: { supervisor: Supervisor; root: boolean; tree: string },
  folders: readonly NewFolder[],
  files: readonly SandboxFile[],
  signal: AbortSignal,
): Promise<void> {
  const run: Run = (argv, stdin) => runOutside(supervisor, root, argv, { stdin, signal });
  const parts = folders.flatMap(({ path, mode }) => [tree + path, mode.toString(8)]);
  const { exitCode, output } = await run(['/bin/sh', '-c', REPLACE, 'sh', ...parts]);
  if (exitCode !== 0) {
    const why = output.toString('utf8', 0, 200).trim() || 'timed out';
    throw new RolloutFailure('sandbox_lost', `replacing folders of a sandbox: ${why}`);
  }
  await putFiles(
    files.map((file) => ({ ...file, path: tree + file.path })),
    run,
  );
}

/** Runs a program of the host in the root folder of process 1, outside of the sandbox's process namespace. */
async function runOutside(
  supervisor: Supervisor,
  root: boolean,
  argv: readonly string[],
  { stdin, signal }: { stdin: Uint8Array | undefined; signal: AbortSignal },
): ReturnType<Run> {
  signal.throwIfAborted();
  const line = [...supervisor.enter, ...(root ? [] : ['--preserve-credentials']), '--', ...argv];
  const child = spawn('nsenter', line, {
    stdio: 'pipe',
    env: { PATH: DEFAULT_PATH, LC_ALL: 'C' },
    cwd: '/',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    killSignal: 'SIGKILL',
  });
  const capture = new Capture(OUTPUT_BYTES);
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => capture.push(chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', (error) => (error.name === 'AbortError' ? resolve(null) : reject(error)));
  });
  supervisor.retainFiles(closed);
  const exitCode = await closed.catch((error: unknown) => {
    throw new RolloutFailure('sandbox_lost', 'cannot start nsenter on the host', { cause: error });
  });
  signal.throwIfAborted();
  return { exitCode, output: capture.result().head };
}
