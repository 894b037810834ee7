/**
 * What a container has changed in its files, read from outside after all its processes have ended: from the upper directories of its
 * overlays, or from its engine. Nothing that ran inside can falsify them any more.
 */

/** A path that differs from the image. A folder is reported too when something in it differs. */
export type Change = { path: string; removed: boolean };

/** `entersFolder`: whether the changes in a folder are wanted. */
export type ChangeVisitor = { entersFolder(path: string): boolean; visit(change: Change): void };

export type FileKind = 'file' | 'folder' | 'other' | 'missing';

export interface FileChanges {
  /**
   * Reports every path that was made, written (even with the same bytes) or removed since the container was started.
   * Throws when it cannot report all of them.
   */
  changes(look: ChangeVisitor, signal: AbortSignal): Promise<void>;
  /** What is at a changed path, no link followed. */
  kindOf(path: string): Promise<FileKind>;
  /** A changed regular file; null when there is none or it is a link, folder or device; SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  /** The same for a path whose folders may be links, as a program in the container would have found it. */
  getLinkedFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
}
