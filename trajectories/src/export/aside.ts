/** Paths of unfinished exports. The path is fixed, so the next start replaces or continues the unfinished export of a killed start. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { inFolder } from '../output/appendfile.ts';

/** Returns the path of the unfinished export, in the same folder as `path`, so that it can be renamed to `path`. */
export const asideOf = (path: string): string =>
  join(dirname(resolve(path)), `.${basename(resolve(path))}.part`);

/**
 * Creates the parent folder of `path`.
 *
 * @throws UsageError when `path` is a file or a folder with files; UnusableError when the parent cannot be created
 */
export async function requireNewPath(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found && (!found.isDirectory() || (await readdir(path)).length > 0)) {
    throw new UsageError(`${path}: exists already; remove it, or choose another --out`, {
      code: 'output_exists',
    });
  }
  await inFolder(path, () => Promise.resolve());
}
