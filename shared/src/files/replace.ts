/** Replaces files atomically, even if the process crashes. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newId } from '../records/ids.ts';

export type ReplaceOptions = {
  /** Exact permissions, independent of the umask. */
  mode?: number;
  /** Syncs the content before the rename, so that a power failure leaves no empty file. */
  sync?: boolean;
  /** Aborts the write; the file stays unchanged. */
  signal?: AbortSignal | undefined;
  /** Path of the temporary file; see {@link replaceWith}. */
  aside?: string;
};

/** Replaces the content of a file. On failure the file is unchanged. Throws the error of the system or the reason of the signal. */
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
 * Replaces a file by the file that `make` writes at `aside`.
 * @param aside path on the same file system; by default a unique name beside `path`, which a crash may leave behind. Concurrent calls must
 * not share a fixed name.
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
    // Only the first error is reported.
    await rm(aside, { force: true }).catch(() => undefined);
    throw error;
  }
}
