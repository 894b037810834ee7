/** Files that change in one step: whoever reads sees the old content or the new one, after a crash too. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newId } from '../records/ids.ts';

export type ReplaceOptions = {
  /** Exactly these permissions, also for a moment; by default what the process gives to new files. */
  mode?: number;
  /** The content is on the disk before it has its name: a power cut leaves no empty file. */
  sync?: boolean;
  /** Ends the writing; the old content stays. */
  signal?: AbortSignal | undefined;
  /** See {@link replaceWith}. */
  aside?: string;
};

/** Throws what the system refuses, or the signal's reason; the file is as it was then. */
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
 * @param aside that name, on the same file system. By default one of its own in the folder of `path`, which a crash may leave; a
 * fixed one is written over by the next call, and must not be written by two at once.
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
    // What matters is the first error: there may be no such folder.
    await rm(aside, { force: true }).catch(() => undefined);
    throw error;
  }
}
