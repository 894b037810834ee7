/** How much of a disk one sandbox has written, measured from outside. */
import { readdir, readlink, stat, statfs } from 'node:fs/promises';
import { sumFolder } from './namespaces/foldersize.ts';
import { membersBy, readNamespace } from './namespaces/processes.ts';

const TIMEOUT_MS = 60_000;
/** Link texts of deleted files, except files in memory. */
const DELETED = /^(?!\/memfd:|\/dev\/shm\/).* \(deleted\)$/;

/** `share`: of the whole file system, by bytes or by inodes, whichever is more. */
export type DiskUse = { bytes: number; share: number };

/**
 * Null when the folder cannot be measured. A folder that takes longer than a minute counts as the whole disk.
 *
 * @param init the sandbox's process 1 by its id on the host, whose deleted files count too; null: unknown
 */
export async function diskUse(folder: string, init: number | null): Promise<DiskUse | null> {
  try {
    const { blocks, bsize, files } = await statfs(folder);
    const whole = blocks * bsize;
    const [named, inodes, deleted] = await Promise.all([
      sumFolder(folder, '--block-size=1', TIMEOUT_MS),
      sumFolder(folder, '--inodes', TIMEOUT_MS),
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
  return bytesByFile.values().reduce((sum, bytes) => sum + bytes, 0);
}
