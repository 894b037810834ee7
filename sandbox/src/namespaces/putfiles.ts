/** Writes files into a sandbox with shell commands. The caller's `run` runs the commands inside or outside of the sandbox. */
import { readFileSync } from 'node:fs';
import { RolloutFailure } from '@swefarm/shared';
import type { SandboxFile } from '../runtime.ts';
import { batchesOf, isSmall } from './batches.ts';

const DEFAULT_MODE = 0o644;
const PUT = readFileSync(new URL('./put.sh', import.meta.url), 'utf8');
const PUT_SMALL = readFileSync(new URL('./putsmall.sh', import.meta.url), 'utf8');

/** Runs a command as root. `exitCode` is null if the command timed out. */
export type Run = (
  argv: readonly string[],
  stdin?: Uint8Array,
) => Promise<{ exitCode: number | null; output: Buffer }>;

/** Writes small files in batches and others one by one. Throws RolloutFailure `node_disk` or `sandbox_lost`, and the errors of `run`. */
export async function putFiles(files: readonly SandboxFile[], run: Run): Promise<void> {
  const left = files.filter((file) => !isSmall(file));
  for (const batch of batchesOf(files.filter(isSmall))) {
    // After a failure each file is written by its own command, which reports the cause.
    if (!(await putSmall(batch, run))) left.push(...batch);
  }
  for (const { path, content, mode = DEFAULT_MODE } of left) {
    const { exitCode, output } = await run(['/bin/sh', '-c', PUT, 'sh', path, mode.toString(8)], content);
    if (exitCode === 0) continue;
    const message = output.toString('utf8', 0, 200).trim();
    const full = /no space left|disk quota/i.test(message);
    throw new RolloutFailure(
      full ? 'node_disk' : 'sandbox_lost',
      `writing ${path} into a sandbox: ${message || 'timed out'}`,
    );
  }
}

/** Writes files by one command that gets them as arguments. Returns false if the command fails. */
async function putSmall(files: readonly SandboxFile[], run: Run): Promise<boolean> {
  const parts = files.flatMap(({ path, content, mode = DEFAULT_MODE }) => [
    path,
    mode.toString(8),
    (0o777 & ~mode).toString(8),
    Buffer.from(content).toString('utf8'),
  ]);
  return (await run(['/bin/sh', '-c', PUT_SMALL, 'sh', ...parts])).exitCode === 0;
}
