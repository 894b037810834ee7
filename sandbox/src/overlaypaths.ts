/**
 * Finds paths of an ended sandbox in the layers of its overlays, from outside. No component of a path is ever followed by the kernel: a
 * link of the sandbox would lead to the host's files.
 */
import type { Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileKind } from './filechanges.ts';
import { splitPath } from './images/treepath.ts';

/** An overlay: where it is mounted in the sandbox, what holds its changes, and what lies below, the uppermost first, as far as it can be read. */
export type Layer = { at: string; upper: string; lowers?: readonly string[] };

/** A folder whose name is not UTF-8, or whose path is too long, holds nothing that the farm looks for. */
export const OUT_OF_REACH: ReadonlySet<string> = new Set(['ENOENT', 'ENAMETOOLONG']);
const MOST_LINKS = 40;

type Found = { path: string; stats: Stats };

/** The overlay that a path is in, with the path's components below its root. */
function layerOf(layers: readonly Layer[], path: string): { layer: Layer; parts: string[] } | null {
  const holds = ({ at }: Layer): boolean => at === '/' || path.startsWith(`${at}/`);
  const layer = layers.filter(holds).toSorted((a, b) => b.at.length - a.at.length)[0];
  return layer ? { layer, parts: path.slice(layer.at.length).split('/').filter(Boolean) } : null;
}

/** `hidden`: something else is there, so that what lies below is not seen. `missing`: this folder says nothing about the path. */
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

/** The path outside for a path of the sandbox; null when it, or a folder on the way to it, is not in an upper directory. */
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

/** What is at a path whose folders are no links, in the uppermost directory that has it; null when none has. */
async function lookUp(layers: readonly Layer[], path: string): Promise<Found | null> {
  const own = layerOf(layers, path);
  for (const root of own ? [own.layer.upper, ...(own.layer.lowers ?? [])] : []) {
    const found = await findIn(root, own?.parts ?? []);
    if (found === 'hidden') return null;
    if (found !== 'missing') return found;
  }
  return null;
}

/** The path with the links among its folders resolved as inside the sandbox; a link at its end stays one. Null for a circle of links. */
export async function resolveLinks(layers: readonly Layer[], path: string): Promise<string | null> {
  const todo = splitPath(path).reverse();
  let done: string[] = [];
  let links = 0;
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if (part === '..') {
      done.pop();
      continue;
    }
    const found = todo.length > 0 ? await lookUp(layers, `/${[...done, part].join('/')}`) : null;
    if (!found?.stats.isSymbolicLink()) {
      done.push(part);
      continue;
    }
    if (++links > MOST_LINKS) return null;
    const target = await readlink(found.path);
    if (target.startsWith('/')) done = [];
    todo.push(...splitPath(target).reverse());
  }
  return `/${done.join('/')}`;
}
