/**
 * Writes the entries of image layers into one tree. The layers are untrusted and the writer may be root: each parent folder is
 * resolved inside the tree, and nothing is opened through a symlink.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { finished, type Readable } from 'node:stream';
import tar, { type Header } from 'tar-stream';
import { splitPath } from './treepath.ts';

const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
const MOST_LINKS = 40;

/** Writes synchronously, because the writer has its own process, and synchronous calls write 30,000 small files twice as fast. */
export class TreeWriter {
  readonly #root: string;
  readonly #owners: boolean;
  /** Real path of each folder, by the path in the layer; cleared when a folder or a link may have been removed. */
  #folders = new Map<string, string[]>();
  /** Entries of the current layer. Whiteouts of the same layer do not apply to them. */
  #made = new Set<string>();
  #bytes = 0;

  /** @param owners true: set the owners of the entries, which requires root */
  constructor(root: string, owners: boolean) {
    this.#root = root;
    this.#owners = owners;
    mkdirSync(root, { recursive: true, mode: 0o755 });
    chmodSync(root, 0o755);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Applies one layer (an uncompressed tar) on top of the tree. Throws if the stream is incomplete. */
  async layer(stream: Readable): Promise<void> {
    this.#made = new Set();
    const extract = tar.extract();
    finished(stream, { writable: false }, (error) => {
      if (error) extract.destroy(error);
    });
    stream.pipe(extract);
    for await (const entry of extract) {
      await this.#entry(entry.header, entry as unknown as Readable);
    }
  }

  async #entry(header: Header, body: Readable): Promise<void> {
    const parts = splitPath(header.name);
    const name = parts.pop();
    if (name === undefined || name === '..') {
      body.resume();
      return;
    }
    const folder = this.#folder(parts, 0);
    const path = join(this.#root, ...folder, name);
    const key = [...folder, name].join('/');
    if (name === OPAQUE) this.#clear(folder);
    else if (name.startsWith(WHITEOUT)) this.#whiteout(folder, name.slice(WHITEOUT.length));
    else if (header.type === 'file' || header.type === 'contiguous-file')
      await this.#file(path, header, body);
    else if (header.type === 'directory') this.#directory(path, header);
    else if (header.type === 'symlink') this.#symlink(path, header);
    else if (header.type === 'link') this.#hardLink(path, header);
    // Devices and fifos are skipped: the sandbox has its own /dev, and only root can make devices.
    for (let end = key.length; end > 0; end = key.lastIndexOf('/', end - 1))
      this.#made.add(key.slice(0, end));
    body.resume();
  }

  async #file(path: string, header: Header, body: Readable): Promise<void> {
    this.#vacate(path);
    const fd = openSync(path, 'wx', 0o600);
    try {
      for await (const chunk of body) {
        for (let at = 0; at < (chunk as Buffer).length; ) at += writeSync(fd, chunk as Buffer, at);
        this.#bytes += (chunk as Buffer).length;
      }
      if (this.#owners) fchownSync(fd, header.uid ?? 0, header.gid ?? 0);
      // Set-id bits require the original owner. The owner needs read access, because an overlay copies the file.
      fchmodSync(
        fd,
        this.#owners ? (header.mode ?? 0o644) & 0o7777 : ((header.mode ?? 0o644) & 0o777) | 0o400,
      );
      const at = header.mtime ?? new Date(0);
      futimesSync(fd, at, at);
    } finally {
      closeSync(fd);
    }
  }

  #directory(path: string, header: Header): void {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found?.isDirectory()) {
      this.#vacate(path);
      mkdirSync(path);
    }
    if (this.#owners) chownSync(path, header.uid ?? 0, header.gid ?? 0);
    chmodSync(
      path,
      this.#owners ? (header.mode ?? 0o755) & 0o7777 : ((header.mode ?? 0o755) & 0o1777) | 0o700,
    );
  }

  #symlink(path: string, header: Header): void {
    this.#vacate(path);
    symlinkSync(header.linkname ?? '', path);
    if (this.#owners) lchownSync(path, header.uid ?? 0, header.gid ?? 0);
  }

  #hardLink(path: string, header: Header): void {
    const parts = splitPath(header.linkname ?? '');
    const name = parts.pop();
    if (name === undefined || name === '..') return;
    const target = join(this.#root, ...this.#folder(parts, 0), name);
    if (target === path) return;
    this.#vacate(path);
    linkSync(target, path);
  }

  /** Returns the real path of a folder, and creates a missing folder. `..` and absolute links end at the root of the tree. */
  #folder(parts: readonly string[], depth: number): string[] {
    const key = parts.join('/');
    const known = this.#folders.get(key);
    if (known) return known;
    if (depth > MOST_LINKS) throw new Error(`too many symlinks in the layer: ${key}`);
    let at: string[] = [];
    for (const [index, part] of parts.entries()) {
      if (part === '..') {
        at = at.slice(0, -1);
        continue;
      }
      const path = join(this.#root, ...at, part);
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found?.isSymbolicLink()) {
        const target = readlinkSync(path);
        const rest = parts.slice(index + 1);
        const base = target.startsWith('/') ? [] : at;
        at = this.#folder([...base, ...splitPath(target), ...rest], depth + 1);
        break;
      }
      if (!found?.isDirectory()) {
        if (found) this.#vacate(path);
        mkdirSync(path, { mode: 0o755 });
      }
      at = [...at, part];
    }
    this.#folders.set(key, at);
    return at;
  }

  #whiteout(folder: string[], name: string): void {
    if (name === '' || name === '.' || name === '..') return;
    const path = [...folder, name];
    if (this.#made.has(path.join('/'))) {
      // This layer has the path too, so only content of lower layers is removed.
      if (lstatSync(join(this.#root, ...path)).isDirectory()) this.#clear(path);
      return;
    }
    rmSync(join(this.#root, ...folder, name), { recursive: true, force: true });
    this.#folders.clear();
  }

  /** Removes the entries of a folder that come from lower layers. */
  #clear(folder: string[]): void {
    const at = join(this.#root, ...folder);
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const child = [...folder, entry.name];
      if (!this.#made.has(child.join('/'))) rmSync(join(at, entry.name), { recursive: true, force: true });
      else if (entry.isDirectory()) this.#clear(child);
    }
    this.#folders.clear();
  }

  #vacate(path: string): void {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found) return;
    if (found.isDirectory()) rmSync(path, { recursive: true, force: true });
    else unlinkSync(path);
    if (found.isDirectory() || found.isSymbolicLink()) this.#folders.clear();
  }
}
