/**
 * The changed files of a container, read from outside after all its processes have ended, so that code inside cannot falsify them: from
 * the upper directories of the overlays, or from the engine.
 */

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
