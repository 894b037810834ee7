/** Files that a sandbox occupies a disk with, and that no folder shows. */
import { readdir, readlink, stat } from 'node:fs/promises';
import { membersBy, readNamespace } from './processes.ts';

/** Links of open files that have no name any more, except those that are memory. */
const UNNAMED = /^(?!\/memfd:|\/dev\/shm\/).* \(deleted\)$/;

/** Bytes of files without a name that the processes of a sandbox have open. @param init its process 1 by its id here; null: none is known */
export async function heldBytes(init: number | null): Promise<number> {
  const namespace = init === null ? null : await readNamespace(init, 'pid');
  // An engine in another process namespace has its own ids: the same one is another process here.
  if (namespace === null || namespace === (await readNamespace(process.pid, 'pid'))) return 0;
  const held = new Map<string, number>();
  for (const pid of (await membersBy('pid')).get(namespace) ?? []) {
    const folder = `/proc/${pid}/fd`;
    for (const fd of await readdir(folder).catch(() => [])) {
      const path = `${folder}/${fd}`;
      if (!UNNAMED.test(await readlink(path).catch(() => ''))) continue;
      const stats = await stat(path).catch(() => null);
      if (stats?.isFile()) held.set(`${stats.dev}:${stats.ino}`, stats.blocks * 512);
    }
  }
  return [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
}
