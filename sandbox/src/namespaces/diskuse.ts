/** Measures from outside how much of a disk a sandbox has written, by blocks and by the number of files. */
import { readdir, readlink, stat, statfs } from 'node:fs/promises';
import { run } from '../run.ts';
import type { DiskUse } from '../runtime.ts';
import { membersBy, readNamespace } from './processes.ts';

const TIMEOUT_MS = 60_000;
/** Minimum number of bytes that a file counts, because an empty file takes an inode and no block. */
const LEAST_PER_FILE = 4_096;
/** Targets of the links in `/proc/PID/fd` to deleted files, except files in memory. */
const DELETED = /^(?!\/memfd:|\/dev\/shm\/).* \(deleted\)$/;

/**
 * Returns null if the folder cannot be measured. A folder that takes longer than a minute counts as the whole disk.
 * @param init process 1 of the sandbox on the host, to find deleted files that are still open; null: unknown
 */
export async function diskUse(folder: string, init: number | null): Promise<DiskUse | null> {
  try {
    const { blocks, bsize, files } = await statfs(folder);
    const whole = blocks * bsize;
    const [[named, inodes], deleted] = await Promise.all([
      sizesOf(folder, TIMEOUT_MS),
      init === null ? 0 : deletedBytes(init),
    ]);
    if (named === null || inodes === null) return null;
    if (!Number.isFinite(named + inodes)) return { bytes: whole, share: 1 };
    const bytes = named + deleted;
    return { bytes, share: Math.max(bytes / whole, files > 0 ? inodes / files : 0) };
  } catch {
    return null;
  }
}

export type Measure = (folder: string) => Promise<number | null>;

/**
 * Returns the bytes of a folder, at least {@link LEAST_PER_FILE} for each file; infinite if the measurement takes too long; null if the
 * folder cannot be measured.
 */
export async function folderSize(folder: string, timeoutMs = TIMEOUT_MS): Promise<number | null> {
  const [bytes, files] = await sizesOf(folder, timeoutMs);
  const known = [bytes, files === null ? null : files * LEAST_PER_FILE].filter((one) => one !== null);
  return known.length === 0 ? null : Math.max(...known);
}

type Size = number | null;

/** Each size is infinite if the measurement takes too long, and null if the measurement fails. */
const sizesOf = (folder: string, timeoutMs: number): Promise<[bytes: Size, inodes: Size]> =>
  Promise.all([sum(folder, '--block-size=1', timeoutMs), sum(folder, '--inodes', timeoutMs)]);

async function sum(folder: string, unit: string, timeoutMs: number): Promise<Size> {
  // Without root, the model's code can make folders unreadable for this user; root of a user namespace may read them.
  const as = process.getuid?.() === 0 ? [] : ['unshare', '--user', '--map-root-user', '--'];
  const [program = '', ...line] = [...as, 'du', '-sx', unit, '--', folder];
  const begun = performance.now();
  try {
    return totalOf((await run(program, line, { timeout: timeoutMs, killSignal: 'SIGKILL' })).stdout);
  } catch (error) {
    const { signal, stdout } = error as { signal?: string | null; stdout?: string };
    if (signal === 'SIGKILL' && performance.now() - begun >= timeoutMs) return Number.POSITIVE_INFINITY;
    // du fails if files vanish during the measurement, but the sum is valid.
    return totalOf(stdout ?? '');
  }
}

function totalOf(stdout: string): number | null {
  const total = /^(\d+)\s/.exec(stdout.trim().split('\n').at(-1) ?? '')?.[1];
  return total === undefined ? null : Number(total);
}

/** Returns the bytes of deleted files that the processes of a sandbox still have open. */
async function deletedBytes(init: number): Promise<number> {
  const namespace = await readNamespace(init, 'pid');
  // The ids of an engine in another process namespace denote other processes here.
  if (namespace === null || namespace === (await readNamespace(process.pid, 'pid'))) return 0;
  const bytesByFile = new Map<string, number>();
  for (const pid of (await membersBy('pid')).get(namespace) ?? []) {
    const folder = `/proc/${pid}/fd`;
    for (const fd of await readdir(folder).catch(() => [])) {
      const path = `${folder}/${fd}`;
      if (!DELETED.test(await readlink(path).catch(() => ''))) continue;
      const stats = await stat(path).catch(() => null);
      if (stats?.isFile()) bytesByFile.set(`${stats.dev}:${stats.ino}`, stats.blocks * 512);
    }
  }
  return bytesByFile.values().reduce((total, bytes) => total + bytes, 0);
}
