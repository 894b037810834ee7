/** Where Apptainer, under either of its names, and what it needs are on this node. */
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';

export const PROGRAMS = ['apptainer', 'singularity'] as const;
const FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/opt/apptainer/bin', '/opt/singularity/bin'];

/** The first of the programs that is where programs are; null when none is. */
export async function findCommand(names: readonly string[]): Promise<string | null> {
  for (const name of names) {
    for (const folder of FOLDERS) {
      const path = join(folder, name);
      const usable = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      );
      if (usable) return path;
    }
  }
  return null;
}
