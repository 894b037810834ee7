/**
 * Append-only files of whole lines, and the small files beside them that are replaced. A crash at any point leaves at
 * most one torn line, which the next start removes.
 */
import { type FileHandle, mkdir, open, readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorMessage, replaceFile, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import { z } from 'zod';

/**
 * Opens a file for appending and cuts off a torn last line. `head`: how each line begins.
 *
 * @throws UsageError when the file holds something else; UnusableError when it cannot be written
 */
export async function openAppending(path: string, head: string): Promise<FileHandle> {
  const file = await inFolder(path, () => open(path, 'a+'));
  try {
    await repair(path, file, head);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Cuts off the text after the last line feed. */
async function repair(path: string, file: FileHandle, head: string): Promise<void> {
  const { size } = await file.stat();
  const chunk = Buffer.alloc(64 * 1024);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunk.length);
    const { bytesRead } = await file.read(chunk, 0, end - start, start);
    const at = chunk.subarray(0, bytesRead).lastIndexOf(0x0a);
    if (at >= 0) {
      if (start + at + 1 < size) await file.truncate(start + at + 1);
      return;
    }
    end = start;
  }
  if (size === 0) return;
  // Without a whole line, the file is cut only if it begins like a line of an output.
  const found = chunk.subarray(0, Math.min(head.length, size)).toString('utf8');
  if (!head.startsWith(found)) throw new UsageError(`${path}: is no output of swefarm; choose another`);
  await file.truncate(0);
}

const cursorFile = (path: string): string => `${path}.cursor.json`;

/** The last stream id whose result is in the file; `0`: unknown. */
export async function readCursor(path: string, runId: string): Promise<string> {
  const text = await readIfThere(cursorFile(path));
  if (text === null) return '0';
  try {
    const cursor = z.object({ run_id: z.string(), last_id: z.string() }).parse(JSON.parse(text));
    return cursor.run_id === runId ? cursor.last_id : '0';
  } catch {
    // Without a cursor, the whole stream is read again, and known lines are dropped.
    return '0';
  }
}

export const writeCursor = (path: string, runId: string, cursor: string): Promise<void> =>
  replaceRecord(cursorFile(path), JSON.stringify({ run_id: runId, last_id: cursor }));

/** Replaces a record that others may read at any moment; it is synced to disk before the rename. */
export const replaceRecord = (path: string, text: string): Promise<void> =>
  replaceFile(path, `${text}\n`, { sync: true, aside: `${path}.new` });

/** Makes the folder of `path`, then runs `action`. Errors as of {@link unwritable}. */
export const inFolder = <T>(path: string, action: () => Promise<T>): Promise<T> =>
  writing(path, async () => {
    await mkdir(dirname(resolve(path)), { recursive: true });
    return await action();
  });

/** The error of a failed write with its remedy; other errors are returned unchanged. */
export function unwritable(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof SwefarmError || code === undefined) return error;
  if (code === 'EISDIR')
    return new UsageError(`${path}: is a folder; --output wants a file`, { cause: error });
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  const remedy = full
    ? 'the disk is full: free some space and give the command again'
    : 'check its permissions';
  const message = `${path}: cannot be written (${errorMessage(error)}); ${remedy}`;
  return new UnusableError('output_unwritable', message, { cause: error });
}

/** Runs an action that writes to `path`. Errors as of {@link unwritable}. */
export async function writing<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw unwritable(path, error);
  }
}

export const readIfThere = (path: string): Promise<string | null> =>
  readFile(path, 'utf8').catch(ignoreMissing);

/** Null for a file that does not exist. Throws other errors. */
export function ignoreMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
