/**
 * The changed files of a container, read from outside after all its processes have ended: from the upper directories of its
 * overlays, or from its engine. Code inside can no longer falsify them.
 */

/** A path that differs from the image. A folder is also reported when something in it differs. */
export type Change = { path: string; removed: boolean };

/** `entersFolder`: whether to report the changes in a folder. */
export type ChangeVisitor = { entersFolder(path: string): boolean; visit(change: Change): void };

export type FileKind = 'file' | 'folder' | 'other' | 'missing';

export interface FileChanges {
  /**
   * Reports every path that was made, written (even with the same bytes) or removed since the start of the container. Throws
   * when it cannot report all of them.
   */
  changes(look: ChangeVisitor, signal: AbortSignal): Promise<void>;
  /** The kind of a changed path, without following links. */
  kindOf(path: string): Promise<FileKind>;
  /** A changed regular file; null for anything else. Throws SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  /** As getFile(), for a path whose folders may be links inside the container. */
  getLinkedFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
}
