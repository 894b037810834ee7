/** Checks out the sources of an earlier commit in a new folder, to run with this repository's packages. */
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { WORKSPACES } from '../../house/tree.ts';
import { run } from '../../src/launchers/run.ts';
import { temporaryFolder } from '../temporaryfolder.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

/** Returns the folder. @throws Error with the remedy when this checkout lacks the commit */
export async function checkOut(commit: string): Promise<string> {
  await run('git', ['-C', ROOT, 'cat-file', '-e', `${commit}^{commit}`]).catch((cause: unknown) => {
    throw new Error(
      `commit ${commit} is not in this checkout (a shallow clone?): git fetch --unshallow, or run this test in a whole one`,
      { cause },
    );
  });
  const path = temporaryFolder('old');
  const archive = join(path, 'archive.tar');
  await run('git', ['-C', ROOT, 'archive', '--output', archive, commit]);
  await run('tar', ['-xf', archive, '-C', path]);
  await linkPackages(path);
  return path;
}

/** Links all installed packages into `path`, where `@swefarm` names the sources in `path`. */
export async function linkPackages(path: string): Promise<void> {
  const modules = join(path, 'node_modules');
  await mkdir(join(modules, '@swefarm'), { recursive: true });
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name === '@swefarm' || name === '.cache') continue;
    await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  for (const name of WORKSPACES) {
    await symlink(join(path, name), join(modules, '@swefarm', name));
    const nested = join(ROOT, name, 'node_modules');
    const own = await readdir(nested).catch(() => []);
    if (own.length > 0) await symlink(nested, join(path, name, 'node_modules'));
  }
}
