/**
 * What a container leaves when all its processes have ended, seen from outside: an engine tells it, or the upper directories of
 * overlays show it. Nothing that ran inside has a say in it any more.
 */

/** A path that is not as the image has it. Folders are told too, when something in them is not. */
export type Change = { path: string; removed: boolean };

/** `within`: a folder that is worth looking into. */
export type Look = { within(path: string): boolean; see(change: Change): void };

export type Kind = 'file' | 'folder' | 'other' | 'missing';

export interface Remains {
  /**
   * Tells all that was made, written (be it with the same bytes) or removed since the container was started.
   * Throws when not all of it can be had: half a list is none.
   */
  changes(look: Look, signal: AbortSignal): Promise<void>;
  /** What is at a changed path, no link followed. */
  kindOf(path: string): Promise<Kind>;
  /** A changed regular file; null when there is none or it is a link, folder or device; SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
}
