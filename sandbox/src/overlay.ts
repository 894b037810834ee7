/**
 * Reads the changes of an ended sandbox from the layers of its overlays, from outside. The kernel may not resolve paths of the sandbox,
 * because a link of the sandbox would lead to the host's files.
 */
import type { Dir, Stats } from 'node:fs';
import { chmod, lstat, opendir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChangeVisitor, type FileChanges, type FileKind, readRegularFile } from './filechanges.ts';
import { resolveLinks } from './images/treepath.ts';

/** An overlay: its mount point in the sandbox, its upper directory, and its readable lower directories, the uppermost first. */
export type Layer = { at: string; upper: string; lowers?: readonly string[] };

/** Errors for a name that is not UTF-8, or for a path that is too long. The farm looks for no such files. */
const OUT_OF_REACH: ReadonlySet<string> = new Set(['ENOENT', 'ENAMETOOLONG']);

type Found = { path: string; stats: Stats };

/** Returns the overlay of a path, and the path's components below the mount point. */
function layerOf(layers: readonly Layer[], path: string): { layer: Layer; parts: string[] } | null {
  const contains = ({ at }: Layer): boolean => at === '/' || path.startsWith(`${at}/`);
  const layer = layers.filter(contains).toSorted((a, b) => b.at.length - a.at.length)[0];
  return layer ? { layer, parts: path.slice(layer.at.length).split('/').filter(Boolean) } : null;
}

/** `hidden`: another entry hides the path in lower directories. `missing`: this directory has no entry for the path. */
async function findIn(root: string, parts: readonly string[]): Promise<Found | 'hidden' | 'missing'> {
  let path = root;
  for (const [index, part] of parts.entries()) {
    path = join(path, part);
    const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
      if (OUT_OF_REACH.has(error.code ?? '')) return null;
      throw error;
    });
    if (!stats) return 'missing';
    if (stats.isCharacterDevice()) return 'hidden';
    if (index === parts.length - 1) return { path, stats };
    if (!stats.isDirectory()) return 'hidden';
  }
  return { path, stats: await lstat(path) };
}

/** Returns the host's path for a path of the sandbox; null if no upper directory contains the path. */
async function locate(
  layers: readonly Layer[],
  path: string,
): Promise<{ path: string; kind: FileKind } | null> {
  const own = layerOf(layers, path);
  if (!own) return null;
  const found = await findIn(own.layer.upper, own.parts);
  if (typeof found === 'string') return null;
  const { stats } = found;
  return { path: found.path, kind: stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other' };
}

/**
 * Returns the entry at a path without links, from the uppermost directory that has the entry. Returns null if no directory has the entry,
 * or if a directory above hides the entry.
 */
async function lookUp(layers: readonly Layer[], path: string): Promise<Found | null> {
  const own = layerOf(layers, path);
  for (const root of own ? [own.layer.upper, ...(own.layer.lowers ?? [])] : []) {
    const found = await findIn(root, own?.parts ?? []);
    if (found === 'hidden') return null;
    if (found !== 'missing') return found;
  }
  return null;
}

/** Resolves the links in the folders of a path inside the sandbox; a link as last part remains. Returns null for a circle of links. */
async function resolveFolders(layers: readonly Layer[], path: string): Promise<string | null> {
  const parts = await resolveLinks(path, async (at, isLast) => {
    const found = isLast ? null : await lookUp(layers, `/${at.join('/')}`);
    return found?.stats.isSymbolicLink() ? readlink(found.path) : null;
  });
  return parts && `/${parts.join('/')}`;
}

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
