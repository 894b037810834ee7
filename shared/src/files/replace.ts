/** Replaces files in one step: a reader sees the old content or the new one, also after a crash. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newId } from '../records/ids.ts';

export type ReplaceOptions = {
  /** Exact permissions from the first moment on; by default those that the process gives to new files. */
  mode?: number;
  /** Syncs the content to disk before the rename, so that a power cut leaves no empty file. */
  sync?: boolean;
  /** Aborts the write; the old content stays. */
  signal?: AbortSignal | undefined;
  /** See {@link replaceWith}. */
  aside?: string;
};

/** Throws the system's error or the signal's reason; the file is unchanged then. */
export async function replaceFile(
  path: string,
  content: string | Uint8Array | Iterable<string>,
  { mode, sync = false, signal, aside }: ReplaceOptions = {},
): Promise<void> {
  const write = async (part: string): Promise<void> => {
    await using file = await open(part, aside === undefined ? 'wx' : 'w', mode);
    if (mode !== undefined) await file.chmod(mode);
    await file.writeFile(content, signal ? { signal } : {});
    if (sync) await file.datasync();
  };
  try {
    await replaceWith(path, write, aside);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/**
 * The same with a file that `make` writes under the name that it is given.
 * @param aside that name, on the same file system. The default is a unique name in the folder of `path`, which a crash may leave
 * behind. The next call overwrites a fixed name, so two calls must not use it at once.
 */
export async function replaceWith(
  path: string,
  make: (aside: string) => Promise<void>,
  aside: string = join(dirname(path), `.${newId()}.part`),
): Promise<void> {
  try {
    await make(aside);
    await rename(aside, path);
  } catch (error) {
    // Report the first error: the folder may not even exist.
    await rm(aside, { force: true }).catch(() => undefined);
    throw error;
  }
}
