/** Appends lines to files and replaces small files. After a crash, the next start removes an incomplete last line. */
import { type FileHandle, mkdir, open, readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorMessage, replaceFile, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import { z } from 'zod';

/**
 * Opens a file for appending and removes an incomplete last line. `head` is the text with which each line begins.
 * @throws UsageError when a file without a complete line does not begin like a line; UnusableError when the file cannot be written
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
  // A file without a complete line is emptied only if it begins like a line of an output.
  const found = chunk.subarray(0, Math.min(head.length, size)).toString('utf8');
  if (!head.startsWith(found)) throw new UsageError(`${path}: is no output of swefarm; choose another`);
  await file.truncate(0);
}

const cursorFile = (path: string): string => `${path}.cursor.json`;

/** Returns the last id of the run's stream whose result is in the file; `0`: unknown. */
export async function readCursor(path: string, runId: string): Promise<string> {
  const text = await readIfThere(cursorFile(path));
  if (text === null) return '0';
  try {
    const cursor = z.object({ run_id: z.string(), last_id: z.string() }).parse(JSON.parse(text));
    return cursor.run_id === runId ? cursor.last_id : '0';
  } catch {
    // The damaged cursor is ignored: the whole stream is read again, and known lines are skipped.
    return '0';
  }
}

export const writeCursor = (path: string, runId: string, cursor: string): Promise<void> =>
  replaceRecord(cursorFile(path), JSON.stringify({ run_id: runId, last_id: cursor }));

/** Replaces a file that other processes may read at any time. The new file is synced to disk before the rename. */
export const replaceRecord = (path: string, text: string): Promise<void> =>
  replaceFile(path, `${text}\n`, { sync: true, aside: `${path}.new` });

/** Creates the folder of `path`, then runs `action`. Throws the errors of {@link unwritable}. */
export const inFolder = <T>(path: string, action: () => Promise<T>): Promise<T> =>
  writing(path, async () => {
    await mkdir(dirname(resolve(path)), { recursive: true });
    return await action();
  });

/** Returns the error of a failed write with its remedy, and other errors unchanged. */
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

/** Runs an action that writes to `path`. Throws the errors of {@link unwritable}. */
export async function writing<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw unwritable(path, error);
  }
}

export const readIfThere = (path: string): Promise<string | null> =>
  readFile(path, 'utf8').catch(ignoreMissing);

/** Returns null for the error of a file that does not exist. Throws other errors. */
export function ignoreMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
