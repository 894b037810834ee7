/**
 * The changed files of a container, read from outside after all its processes have ended, so that code inside cannot falsify them: from
 * the upper directories of the overlays, or from the engine.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { SwefarmError } from '@swefarm/shared';

/** A path that differs from the image. A folder is also reported when something in it differs. */
export type Change = { path: string; removed: boolean };

/** `entersFolder`: whether to report the changes in a folder. */
export type ChangeVisitor = { entersFolder(path: string): boolean; visit(change: Change): void };

export type FileKind = 'file' | 'folder' | 'other' | 'missing';

export interface FileChanges {
  /**
   * Reports every path that was made, written (even with the same bytes) or removed since the start of the container. Throws if the
   * list would be incomplete.
   */
  changes(look: ChangeVisitor, signal: AbortSignal): Promise<void>;
  /** Returns the kind of a changed path, without following links. */
  kindOf(path: string): Promise<FileKind>;
  /** Reads a changed regular file; null for anything else. Throws SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  /** Reads a file as getFile() does, but folders of the path may be links inside the container. */
  getLinkedFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
}

/**
 * Reads a regular file of this host without following a link; null for anything else. Throws SwefarmError file_too_large, and errors of
 * the system. @param shown path for the error message
 */
export async function readRegularFile(path: string, shown: string, maxBytes: number): Promise<Buffer | null> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const found = await file.stat();
  if (!found.isFile()) return null;
  if (found.size > maxBytes)
    throw new SwefarmError('file_too_large', `${shown} has ${found.size} bytes, more than ${maxBytes}`);
  return await file.readFile();
}
