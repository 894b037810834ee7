/** Makes .sif files from unpacked trees, as sites provide them with their datasets. */
import { run } from '../launchers/run.ts';

/** Options of mksquashfs for light compression, which takes a third of the time. */
const QUICK = '-comp gzip -Xcompression-level 1 -noappend';

/** Writes the image of `tree` to `path`. Needs Apptainer, and root where the tree is root's. */
export async function buildSif(tree: string, path: string): Promise<void> {
  await run('apptainer', ['--silent', 'build', '--force', `--mksquashfs-args=${QUICK}`, path, tree]);
}
