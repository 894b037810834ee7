/** Measures the disk use of a folder, by blocks and by the number of files. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;
/** An empty file takes an inode and no block, so each file counts as at least one block of the usual size. */
const LEAST_PER_FILE = 4_096;

/** Returns bytes; null when the folder cannot be measured. */
export type Measure = (folder: string) => Promise<number | null>;

/** Infinite for a folder that cannot be measured in time: it has too many files. */
export async function folderSize(folder: string, timeoutMs = TIMEOUT_MS): Promise<number | null> {
  const [bytes, files] = await Promise.all([
    sumFolder(folder, '--block-size=1', timeoutMs),
    sumFolder(folder, '--inodes', timeoutMs),
  ]);
  const known = [bytes, files === null ? null : files * LEAST_PER_FILE].filter((one) => one !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** The total that `du` prints for a folder; infinite when it takes too long, null when it fails. @param unit an option of `du` */
export async function sumFolder(folder: string, unit: string, timeoutMs: number): Promise<number | null> {
  // Without root, the model's code can make folders unreadable for this user; root of a user namespace may read them.
  const as = process.getuid?.() === 0 ? [] : ['unshare', '--user', '--map-root-user', '--'];
  const [program = '', ...line] = [...as, 'du', '-sx', unit, '--', folder];
  const begun = performance.now();
  try {
    return totalOf((await run(program, line, { timeout: timeoutMs, killSignal: 'SIGKILL' })).stdout);
  } catch (error) {
    const { signal, stdout } = error as { signal?: string | null; stdout?: string };
    if (signal === 'SIGKILL' && performance.now() - begun >= timeoutMs) return Number.POSITIVE_INFINITY;
    // The exit code reports files that vanished meanwhile; the sum is valid.
    return totalOf(stdout ?? '');
  }
}

function totalOf(stdout: string): number | null {
  const total = /^(\d+)\s/.exec(stdout.trim().split('\n').at(-1) ?? '')?.[1];
  return total === undefined ? null : Number(total);
}
