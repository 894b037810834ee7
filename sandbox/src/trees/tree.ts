/** Reads a file or a folder of a sandbox from a tar archive. Hostile code may have written the archive. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { SwefarmError } from '@swefarm/shared';
import tar from 'tar-stream';

/** An entry below a folder, by its path relative to the folder: a file, a folder without `content` and `link`, or a symbolic link without `mode`. */
export type TreeEntry = { path: string; mode?: number; content?: Uint8Array; link?: string };

/** `folder`: false for a single file, whose path is `''`. `refused`: paths that were left out, each with the reason. */
export type Tree = { folder: boolean; entries: TreeEntry[]; refused: string[] };

/** Maximum of a tree: bytes of all files together, and number of entries. */
export type TreeLimits = { bytes: number; entries: number };

/** Permission bits of files and folders. Other bits are cleared, so no file is setuid or setgid. */
const PERMISSIONS = 0o777;
const MOST_REFUSED = 20;
/** Maximum of a path and of the target of a link, in bytes. */
const LONGEST_PATH = 1_000;
/** Maximum of a name in a path, in bytes: the limit of Linux. */
const LONGEST_NAME = 255;
/** Replaces bytes that are no UTF-8 in decoded names. A name of 255 bytes can become a name of 765 bytes. */
const UNDECODED = '\ufffd';
/** Bytes of an archive that are read without a pause: at most 256 headers. */
const PIECE_BYTES = 128 * 1024;
/** Characters of a path and of a reason in `refused`. */
const SHOWN = 200;
const FILES: ReadonlySet<string> = new Set(['file', 'contiguous-file']);

/**
 * Returns the content of an archive of one file or one folder, or null if the archive has no entry. Leaves out devices, pipes, paths and
 * links that lead out of the folder, and names that are no UTF-8 or too long, and lists them in `refused`. They count as entries. Throws
 * SwefarmError `file_too_large` above the limits, and errors of tar-stream.
 */
export async function readTree(archive: Uint8Array, limits: TreeLimits): Promise<Tree | null> {
  const extract = tar.extract();
  Readable.from(inPieces(archive)).pipe(extract);
  const found = new TreeBuilder(limits);
  for await (const entry of extract) {
    const { name, type, mode = 0, linkname } = entry.header;
    found.add(name, type ?? 'file', { mode, linkname: linkname ?? '', content: await buffer(entry) });
  }
  return found.tree();
}

/** Yields the archive in pieces, so that other work of the event loop runs between them. */
async function* inPieces(archive: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < archive.length; at += PIECE_BYTES) {
    yield archive.subarray(at, at + PIECE_BYTES);
    await setImmediate();
  }
}

type Found = { mode: number; linkname: string; content: Buffer };

class TreeBuilder {
  readonly #limits: TreeLimits;
  readonly #entries = new Map<string, TreeEntry>();
  readonly #refused: string[] = [];
  #folder: boolean | null = null;
  #bytes = 0;
  #headers = 0;

  constructor(limits: TreeLimits) {
    this.#limits = limits;
  }

  /** Adds an entry of the archive. The first entry is the folder itself or the only file. Throws SwefarmError `file_too_large`. */
  add(name: string, type: string, found: Found): void {
    const path = relativePath(name);
    const isFirst = this.#folder === null;
    this.#folder ??= type === 'directory';
    if (isFirst && this.#folder && path === '') return;
    this.#headers += 1;
    const { entries } = this.#limits;
    if (this.#headers > entries)
      throw new SwefarmError('file_too_large', `more than ${entries} files and folders`);
    const entry = this.#folder ? this.#below(path, type, found) : fileOf(type, found, isFirst);
    if (typeof entry === 'string') this.#refuse(name, entry);
    else this.#put(entry);
  }

  /** Returns an entry of the folder, or the reason why the entry is refused. */
  #below(path: string | null, type: string, { mode, linkname, content }: Found): TreeEntry | string {
    if (path === null || path === '') return 'leads out of the folder';
    const problem = problemOf(path) ?? (type === 'symlink' ? problemOf(linkname) : null);
    if (problem !== null) return problem;
    if (!this.#isFree(path, type)) return 'is below a link or a file, or occurs twice';
    if (type === 'directory') return { path, mode: mode & PERMISSIONS };
    if (FILES.has(type)) return { path, mode: mode & PERMISSIONS, content };
    if (type === 'symlink')
      return staysInside(path, linkname) ? { path, link: linkname } : `is a link to ${linkname}`;
    const target = type === 'link' ? this.#entries.get(relativePath(linkname) ?? '') : undefined;
    return target?.content ? { ...target, path } : `is a ${type}`;
  }

  /** Throws SwefarmError `file_too_large`. Hard links count as copies. */
  #put(entry: TreeEntry): void {
    this.#bytes += entry.content?.length ?? 0;
    this.#entries.set(entry.path, entry);
    const { bytes } = this.#limits;
    if (this.#bytes > bytes) throw new SwefarmError('file_too_large', `more than ${bytes} bytes`);
  }

  #refuse(name: string, why: string): void {
    if (this.#refused.length < MOST_REFUSED)
      this.#refused.push(`${name.slice(0, SHOWN)} ${why.slice(0, SHOWN)}`);
  }

  /** Returns whether no other entry has the path, and the entry above is a folder. An archive of tar names each folder before its content. */
  #isFree(path: string, type: string): boolean {
    const above = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    if (above !== '' && !this.#isFolder(above)) return false;
    return !this.#entries.has(path) || (type === 'directory' && this.#isFolder(path));
  }

  #isFolder(path: string): boolean {
    const entry = this.#entries.get(path);
    return entry !== undefined && !entry.content && entry.link === undefined;
  }

  tree(): Tree | null {
    if (this.#folder === null) return null;
    return { folder: this.#folder, entries: [...this.#entries.values()], refused: this.#refused };
  }
}

/** Returns the only entry of an archive of one file, or the reason why the entry is refused. */
function fileOf(type: string, { mode, content }: Found, isFirst: boolean): TreeEntry | string {
  if (!isFirst) return 'is beside the file';
  return FILES.has(type) ? { path: '', mode: mode & PERMISSIONS, content } : `is a ${type}`;
}

/** Returns the reason why no file system can have the path, or why the path differs from the path in the archive; else null. */
function problemOf(path: string): string | null {
  if (path.includes(UNDECODED)) return 'has a name that is no UTF-8';
  if (Buffer.byteLength(path) > LONGEST_PATH) return `has a path of more than ${LONGEST_PATH} bytes`;
  const isLong = path.split('/').some((name) => Buffer.byteLength(name) > LONGEST_NAME);
  return isLong ? `has a name of more than ${LONGEST_NAME} bytes` : null;
}

/** Returns the path without `.` and slashes at its ends, or null if the path leads out of the folder. */
function relativePath(name: string): string | null {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return name.startsWith('/') || name.includes('\0') || parts.includes('..') ? null : parts.join('/');
}

/**
 * Returns whether a link stays inside the folder. `..` may only be at the start: after a name, which may be a link itself, `..` could
 * lead anywhere.
 */
function staysInside(path: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false;
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const up = parts.lastIndexOf('..') + 1;
  return parts.slice(0, up).every((part) => part === '..') && up <= path.split('/').length - 1;
}
