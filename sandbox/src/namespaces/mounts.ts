/** Checks paths that mount tables must name, and makes the lines of mount tables. */
import { isAbsolute } from 'node:path';
import { errorMessage, RolloutFailure, UsageError } from '@swefarm/shared';

const SHM_BYTES = 64 * 1024 * 1024;

/** Returns the line of a mount table for shared memory of limited size. */
export const sharedMemoryMount = (path: string): string =>
  `tmpfs ${path} tmpfs size=${SHM_BYTES},mode=1777,nosuid,nodev 0 0\n`;

/** Returns the line of a mount table for an overlay. `volatile`: nothing is synced, because the files are deleted with the sandbox. */
export const overlayMount = (
  target: string,
  { upper, work, lowers }: { upper: string; work: string; lowers: readonly string[] },
  attributes: 'redirect_dir=off' | 'userxattr',
): string =>
  `overlay ${target} overlay lowerdir=${lowers.join(':')},upperdir=${upper},workdir=${work},volatile,${attributes},nosuid,nodev 0 0\n`;

/**
 * Throws RolloutFailure image_not_found for a path that contains a separator of overlay options (comma, colon) or of mount tables
 * (blank), a backslash or quotes.
 */
export function requireMountable(path: string): void {
  if (/[\s,:\\"']/.test(path)) {
    throw new RolloutFailure(
      'image_not_found',
      `"${path}" has blanks, commas, colons or quotes: mounts cannot name it`,
    );
  }
}

/** Throws UsageError for a configured folder that mount tables and command lines cannot name. */
export function requireMountableFolder(path: string): void {
  if (!isAbsolute(path)) throw new UsageError(`"${path}" must be an absolute path`);
  try {
    requireMountable(path);
  } catch (error) {
    throw new UsageError(errorMessage(error), { cause: error });
  }
}
