/** Which paths mount tables can name, and the mounts that sandboxes of every runtime have. */
import { isAbsolute } from 'node:path';
import { errorMessage, RolloutFailure, UsageError } from '@swefarm/shared';

const SHM_BYTES = 64 * 1024 * 1024;

/** The line of a mount table for a sandbox's shared memory, whose size is limited. */
export const sharedMemoryMount = (path: string): string =>
  `tmpfs ${path} tmpfs size=${SHM_BYTES},mode=1777,nosuid,nodev 0 0\n`;

/**
 * Overlay options are separated by commas and colons, mount tables by blanks. Throws RolloutFailure image_not_found for an image's path
 * that contains one of these.
 */
export function requireMountable(path: string): void {
  if (/[\s,:\\"']/.test(path)) {
    throw new RolloutFailure(
      'image_not_found',
      `"${path}" has blanks, commas, colons or quotes: mounts cannot name it`,
    );
  }
}

/** Throws UsageError for a folder of the configuration that mount tables and command lines cannot name. */
export function requireMountableFolder(path: string): void {
  if (!isAbsolute(path)) throw new UsageError(`"${path}" must be an absolute path`);
  try {
    requireMountable(path);
  } catch (error) {
    throw new UsageError(errorMessage(error), { cause: error });
  }
}
