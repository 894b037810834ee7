/** Paths inside an untrusted tree. Symlinks are resolved relative to the tree's root, so no path leads out of the tree. */
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';

const MOST_LINKS = 40;

export const splitPath = (path: string): string[] =>
  path.split('/').filter((part) => part !== '' && part !== '.');

/**
 * Resolves the links of a path inside a tree, and returns the parts of the real path; null for a circle of links.
 * @param linkAt returns the target of a link; null: the entry is no link, or must not be resolved
 */
export async function resolveLinks(
  path: string,
  linkAt: (parts: readonly string[], isLast: boolean) => Promise<string | null>,
): Promise<string[] | null> {
  const todo = splitPath(path).reverse();
  let done: string[] = [];
  let links = 0;
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if (part === '..') {
      done.pop();
      continue;
    }
    const target = await linkAt([...done, part], todo.length === 0);
    if (target === null) {
      done.push(part);
      continue;
    }
    if (++links > MOST_LINKS) return null;
    if (target.startsWith('/')) done = [];
    todo.push(...splitPath(target).reverse());
  }
  return done;
}

/**
 * Returns the host's path of `path` inside `root`, with all symlinks resolved; null if a component is missing or is no folder. The tree
 * must not change during the call. Throws Error with code ELOOP.
 */
export async function resolveInside(root: string, path: string): Promise<string | null> {
  let exists = true;
  const parts = await resolveLinks(path, async (at, isLast) => {
    const found = exists ? await lstat(join(root, ...at)).catch(ignoreAbsent) : undefined;
    if (found?.isSymbolicLink()) return readlink(join(root, ...at));
    exists = found !== undefined && (isLast || found.isDirectory());
    return null;
  });
  if (parts === null) throw Object.assign(new Error(`too many symlinks in ${path}`), { code: 'ELOOP' });
  return exists ? join(root, ...parts) : null;
}

function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
