/** A folder of files that appears under its name only once it is whole. */
import { appendFile, mkdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { asideOf, requireNewPath, unwritablePath } from './aside.ts';

export interface FolderTree extends AsyncDisposable {
  /** `name`: path inside the folder. Throws UnusableError `output_unwritable`. */
  write(name: string, content: string | Uint8Array): Promise<void>;
  /** Adds to a file. Throws as `write`. */
  append(name: string, text: string): Promise<void>;
  finish(): Promise<void>;
}

/** Throws UsageError for a path that holds something. */
export async function openFolderTree(path: string): Promise<FolderTree> {
  await requireNewPath(path);
  const aside = asideOf(path);
  const made = new Set<string>();
  const trying = async (action: () => Promise<void>): Promise<void> => {
    try {
      await action();
    } catch (error) {
      throw unwritablePath(path, error);
    }
  };
  await trying(async () => {
    await rm(aside, { recursive: true, force: true });
    await mkdir(aside);
  });
  const put = (
    name: string,
    content: string | Uint8Array,
    how: typeof writeFile | typeof appendFile,
  ): Promise<void> =>
    trying(async () => {
      const file = join(aside, name);
      const folder = dirname(file);
      if (!made.has(folder)) await mkdir(folder, { recursive: true });
      made.add(folder);
      await how(file, content);
    });
  return {
    write: (name, content) => put(name, content, writeFile),
    append: (name, text) => put(name, text, appendFile),
    finish: () =>
      trying(async () => {
        // An empty folder may be there.
        await rmdir(path).catch(() => undefined);
        await rename(aside, path);
      }),
    [Symbol.asyncDispose]: () => rm(aside, { recursive: true, force: true }),
  };
}
