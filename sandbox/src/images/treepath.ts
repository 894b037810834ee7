/** Paths inside an untrusted tree. Symlinks are resolved relative to the tree's root, so no path leads out of the tree. */
import { lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const MOST_LINKS = 40;

export const splitPath = (path: string): string[] =>
  path.split('/').filter((part) => part !== '' && part !== '.');

/**
 * Returns the host's path of `path` inside `root`, with all symlinks resolved; null if a component is missing or is no folder. The tree
 * must not change during the call. Throws Error with code ELOOP.
 */
export function resolveInside(root: string, path: string): string | null {
  const todo = splitPath(path).reverse();
  let done: string[] = [];
  let links = 0;
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if (part === '..') {
      done.pop();
      continue;
    }
    const at = join(root, ...done, part);
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (!found) return null;
    if (!found.isSymbolicLink()) {
      if (!found.isDirectory() && todo.length > 0) return null;
      done.push(part);
      continue;
    }
    if (++links > MOST_LINKS)
      throw Object.assign(new Error(`too many symlinks in ${path}`), { code: 'ELOOP' });
    const target = readlinkSync(at);
    if (target.startsWith('/')) done = [];
    todo.push(...splitPath(target).reverse());
  }
  return join(root, ...done);
}
