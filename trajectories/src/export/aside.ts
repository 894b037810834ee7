/** Where an export lies until it is whole: under a fixed name beside its place, so that the next start replaces what a kill left. */
import { mkdir, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorMessage, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';

/** On the same file system as `path`. */
export const asideOf = (path: string): string =>
  join(dirname(resolve(path)), `.${basename(resolve(path))}.part`);

/**
 * Makes the folder above `path`.
 *
 * @throws UsageError when something lies at `path` already; UnusableError when the folder cannot be made
 */
export async function requireNewPath(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found && (!found.isDirectory() || (await readdir(path)).length > 0)) {
    throw new UsageError(`${path}: exists already; remove it, or choose another --out`, {
      code: 'output_exists',
    });
  }
  await mkdir(dirname(resolve(path)), { recursive: true }).catch((error: unknown) => {
    throw unwritablePath(path, error);
  });
}

/** The error of a write with its remedy; errors of our own are returned as they are. */
export function unwritablePath(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof SwefarmError || code === undefined) return error;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  const remedy = full ? 'the disk is full: free some space and export again' : 'check its permissions';
  return new UnusableError(
    'output_unwritable',
    `${path}: cannot be written (${errorMessage(error)}); ${remedy}`,
    { cause: error },
  );
}
