/** Reads the changes of an ended sandbox from the upper directories, without following links. */
import type { Dir } from 'node:fs';
import { chmod, lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChangeVisitor, type FileChanges, readRegularFile } from './filechanges.ts';
import { type Layer, locate, OUT_OF_REACH, resolveFolders } from './overlaypaths.ts';

const ENTRIES_AT_ONCE = 1024;

export function overlayChanges(layers: readonly Layer[]): FileChanges {
  return {
    async changes(look, signal) {
      for (const layer of layers) await walk(layer, look, signal);
    },
    async kindOf(path) {
      const found = await locate(layers, path);
      return found?.kind ?? 'missing';
    },
    getFile: (path, maxBytes) => readChanged(layers, path, maxBytes),
    async getLinkedFile(path, maxBytes) {
      const resolved = await resolveFolders(layers, path);
      return resolved === null ? null : readChanged(layers, resolved, maxBytes);
    },
  };
}

async function readChanged(layers: readonly Layer[], path: string, maxBytes: number): Promise<Buffer | null> {
  const found = await locate(layers, path);
  return found?.kind === 'file' ? readRegularFile(found.path, path, maxBytes) : null;
}

/**
 * Returns a stamp that changes whenever the file is written, linked, renamed or its mode changes; null if the upper directory has no
 * readable file at the path. Code inside cannot restore a stamp, because the kernel sets the inode's change time.
 */
export async function readFileStamp(upper: string, path: string): Promise<string | null> {
  const found = await locate([{ at: '/', upper }], path).catch(() => null);
  if (found?.kind !== 'file') return null;
  const { ino, ctimeNs, size } = await lstat(found.path, { bigint: true });
  return `${ino} ${ctimeNs} ${size}`;
}

const below = (at: string, name: string): string => (at === '/' ? `/${name}` : `${at}/${name}`);

async function walk({ at, upper }: Layer, look: ChangeVisitor, signal: AbortSignal): Promise<void> {
  const todo = [''];
  for (let folder = todo.pop(); folder !== undefined; folder = todo.pop()) {
    const entries = await openFolder(join(upper, folder));
    if (entries === null) {
      if (folder === '') throw new Error('the upper directory of the sandbox is gone');
      continue;
    }
    for await (const entry of entries) {
      signal.throwIfAborted();
      const inside = `${folder}/${entry.name}`;
      const path = below(at, inside.slice(1));
      look.visit({ path, removed: entry.isCharacterDevice() });
      if (entry.isDirectory() && look.entersFolder(path)) todo.push(inside);
    }
  }
}

/** Opens a folder; null if the folder is absent. If code made the folder unreadable, this user, who owns it, makes it readable again. */
async function openFolder(path: string): Promise<Dir | null> {
  const attempt = () => opendir(path, { bufferSize: ENTRIES_AT_ONCE });
  try {
    return await attempt();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (OUT_OF_REACH.has(code)) return null;
    if (code !== 'EACCES') throw error;
    await chmod(path, 0o700);
    return attempt();
  }
}
