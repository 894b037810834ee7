/**
 * Finds paths of an ended sandbox in the layers of its overlays, from outside. The kernel may not resolve these paths, because a link
 * of the sandbox would lead to the host's files.
 */
import type { Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileKind } from './filechanges.ts';
import { resolveLinks } from './images/treepath.ts';

/** An overlay: its mount point in the sandbox, its upper directory, and its readable lower directories, the uppermost first. */
export type Layer = { at: string; upper: string; lowers?: readonly string[] };

/** Errors for a name that is not UTF-8, or for a path that is too long. The farm looks for no such files. */
export const OUT_OF_REACH: ReadonlySet<string> = new Set(['ENOENT', 'ENAMETOOLONG']);

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
export async function locate(
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

/** Returns the entry at a path without links, from the uppermost directory that has the entry; null if no directory has it. */
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
export async function resolveFolders(layers: readonly Layer[], path: string): Promise<string | null> {
  const parts = await resolveLinks(path, async (at, isLast) => {
    const found = isLast ? null : await lookUp(layers, `/${at.join('/')}`);
    return found?.stats.isSymbolicLink() ? readlink(found.path) : null;
  });
  return parts && `/${parts.join('/')}`;
}
