/** Checks the folders of this machine that a container mounts. */
import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { RolloutFailure } from '@swefarm/shared';
import type { ContainerSpec } from './runtime.ts';

/** Characters that separate parts of mount options and of mount tables. */
const SEPARATORS = /[\s,:\\"']/;

/**
 * @param isLocal false: the engine may run on another machine, so it checks whether the folders exist
 * @throws RolloutFailure `sandbox_refused` for a missing folder, and for a path that mounts cannot name
 */
export async function requireMounts({ mounts = [] }: ContainerSpec, isLocal = true): Promise<void> {
  for (const { source, target } of mounts) {
    for (const path of [source, target]) {
      if (posix.normalize(path) !== path || !/^\/[^/]/.test(path) || SEPARATORS.test(path))
        throw refused(`"${path}" is not an absolute, normal path without blanks, commas, colons and quotes`);
    }
    const isFolder =
      !isLocal ||
      (await stat(source).then(
        (found) => found.isDirectory(),
        () => false,
      ));
    if (!isFolder) throw refused(`there is no folder ${source} on this machine`);
  }
}

/** Returns the failure of a container that cannot have its mounts. */
export const refused = (why: string): RolloutFailure =>
  new RolloutFailure('sandbox_refused', `mounting a folder into a sandbox: ${why}`);
