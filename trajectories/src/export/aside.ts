/** An unfinished export has a fixed name beside its final path, so that the next start replaces what a killed one left. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { inFolder } from '../output/appendfile.ts';

/** On the same file system as `path`. */
export const asideOf = (path: string): string =>
  join(dirname(resolve(path)), `.${basename(resolve(path))}.part`);

/**
 * Makes the folder above `path`.
 *
 * @throws UsageError when `path` is a file or a folder with files; UnusableError when the folder cannot be made
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
