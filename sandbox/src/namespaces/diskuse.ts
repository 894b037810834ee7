/** How much of a disk a sandbox has written, measured from outside, by blocks and by the number of files. */
import { execFile } from 'node:child_process';
import { readdir, readlink, stat, statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { DiskUse } from '../runtime.ts';
import { membersBy, readNamespace } from './processes.ts';

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;
/** An empty file takes an inode and no block, so each file counts as at least one block of the usual size. */
const LEAST_PER_FILE = 4_096;
/** Targets of the links in `/proc/PID/fd` to deleted files, except files in memory. */
const DELETED = /^(?!\/memfd:|\/dev\/shm\/).* \(deleted\)$/;

/**
 * Null when the folder cannot be measured. A folder that takes longer than a minute counts as the whole disk.
 *
 * @param init the sandbox's process 1 by its id on the host, whose deleted files count too; null: unknown
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

/** Infinite for a folder that cannot be measured in time: it has too many files. */
export async function folderSize(folder: string, timeoutMs = TIMEOUT_MS): Promise<number | null> {
  const [bytes, files] = await sizesOf(folder, timeoutMs);
  const known = [bytes, files === null ? null : files * LEAST_PER_FILE].filter((one) => one !== null);
  return known.length === 0 ? null : Math.max(...known);
}

type Size = number | null;

/** Each is infinite when it takes too long to measure, and null when it cannot be measured. */
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
    // The exit code reports files that vanished meanwhile; the sum is valid.
    return totalOf(stdout ?? '');
  }
}

function totalOf(stdout: string): number | null {
  const total = /^(\d+)\s/.exec(stdout.trim().split('\n').at(-1) ?? '')?.[1];
  return total === undefined ? null : Number(total);
}

/** Bytes of deleted files that the processes of a sandbox still have open. */
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
