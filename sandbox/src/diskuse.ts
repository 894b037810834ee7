/** How much of a disk one sandbox has written, measured from outside. */
import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;

/** `share`: of the whole file system, by bytes or by inodes, whichever is more. */
export type DiskUse = { bytes: number; share: number };

/**
 * Null when it cannot be seen. A folder that takes longer than a minute to measure counts as the whole disk.
 *
 * @param held bytes of files that no folder shows
 */
export async function diskUse(folder: string, held: number): Promise<DiskUse | null> {
  try {
    const { blocks, bsize, files } = await statfs(folder);
    const whole = blocks * bsize;
    const [named, inodes] = await Promise.all([du(folder, '--block-size=1'), du(folder, '--inodes')]);
    if (named === null || inodes === null) return { bytes: whole, share: 1 };
    const bytes = named + held;
    return { bytes, share: Math.max(bytes / whole, files > 0 ? inodes / files : 0) };
  } catch {
    return null;
  }
}

/** Null when it took too long. Folders that may not be read are left out of the sum. */
async function du(folder: string, unit: string): Promise<number | null> {
  const line = ['--summarize', '--one-file-system', unit, '--', folder];
  const text = await run('du', line, { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' }).then(
    ({ stdout }) => stdout,
    (error: { killed?: boolean; stdout?: string }) => (error.killed ? null : (error.stdout ?? '')),
  );
  if (text === null) return null;
  const sum = /^\d+/.exec(text)?.[0];
  if (sum === undefined) throw new Error(`du printed no sum for ${folder}`);
  return Number(sum);
}
