/** Writes a folder of files under a temporary name and renames the folder when all files are complete. */
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { writing } from '../output/appendfile.ts';
import { asideOf, requireNewPath } from './aside.ts';

export interface FolderTree extends AsyncDisposable {
  /** Writes the file `name`, a path inside the folder. Throws UsageError for a path outside, UnusableError `output_unwritable`. */
  write(name: string, content: string | Uint8Array, mode?: number): Promise<void>;
  /** Makes an empty folder, unless it exists. Throws the errors of `write`. */
  makeFolder(name: string): Promise<void>;
  /** Makes a symbolic link. Throws the errors of `write`. */
  link(name: string, target: string): Promise<void>;
  /** Appends text to a file. Throws the errors of `write`. */
  append(name: string, text: string): Promise<void>;
  finish(): Promise<void>;
}

/** Throws UsageError for a path outside the folder. Instance ids come from other programs and are parts of file names. */
function requireInside(path: string, name: string): void {
  const parts = name.split('/');
  if (!name.includes('\0') && !parts.some((part) => part === '' || part === '.' || part === '..')) return;
  throw new UsageError(
    `${path}: the file ${JSON.stringify(name)} would be outside of it; correct the instance ids of the exported lines: no ids with "/", "." or ".." alone`,
  );
}

/** Opens a folder that gets the name `path` when it is finished. Throws the errors of {@link requireNewPath}. */
export async function openFolderTree(path: string): Promise<FolderTree> {
  await requireNewPath(path);
  const aside = asideOf(path);
  const made = new Set<string>();
  await writing(path, async () => {
    await rm(aside, { recursive: true, force: true });
    await mkdir(aside);
  });
  // These calls are synchronous, because thousands of small files take several times as long through the thread pool.
  const withFile = async (name: string, action: (file: string) => void): Promise<void> => {
    requireInside(path, name);
    await writing(path, async () => {
      const file = join(aside, name);
      const folder = dirname(file);
      if (!made.has(folder)) mkdirSync(folder, { recursive: true });
      made.add(folder);
      action(file);
    });
  };
  return {
    write: (name, content, mode) =>
      withFile(name, (file) => writeFileSync(file, content, mode === undefined ? {} : { mode })),
    makeFolder: (name) => withFile(name, (file) => void mkdirSync(file, { recursive: true })),
    link: (name, target) => withFile(name, (file) => symlinkSync(target, file)),
    append: (name, text) => withFile(name, (file) => appendFileSync(file, text)),
    finish: () =>
      writing(path, async () => {
        // The user may have created an empty folder at `path`.
        await rmdir(path).catch(() => undefined);
        await rename(aside, path);
      }),
    [Symbol.asyncDispose]: () => rm(aside, { recursive: true, force: true }),
  };
}
