/** A text file that appears under its name only once it is whole; gzipped when the name ends in .gz. */
import { createWriteStream, type WriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGzip, type Gzip } from 'node:zlib';
import { asideOf, requireNewPath, unwritablePath } from './aside.ts';

export interface TextFile extends AsyncDisposable {
  /** Resolves when more may be written. Throws UnusableError `output_unwritable`. */
  write(text: string | Uint8Array): Promise<void>;
  /** Writes the file to disk and gives it its name. Throws as `write`. */
  finish(): Promise<void>;
}

/** Fast: text of trajectories is repetitive, and higher levels gain little. */
const GZIP_LEVEL = 3;
const BLOCK_CHARS = 256 * 1024;

/** `-` is standard output. Throws UsageError for a path that holds something. */
export async function openTextFile(path: string): Promise<TextFile> {
  if (path === '-') return standardOutput();
  await requireNewPath(path);
  return new AsideFile(path);
}

class AsideFile implements TextFile {
  readonly #path: string;
  readonly #aside: string;
  readonly #file: WriteStream;
  readonly #gzip: Gzip | null;
  #block: string[] = [];
  #chars = 0;
  #failed: unknown = null;

  constructor(path: string) {
    this.#path = path;
    this.#aside = asideOf(path);
    this.#file = createWriteStream(this.#aside, { flush: true, highWaterMark: 1024 * 1024 });
    this.#gzip = path.endsWith('.gz') ? createGzip({ level: GZIP_LEVEL }) : null;
    this.#file.on('error', (error) => this.#fail(error));
    this.#gzip?.on('error', (error) => this.#fail(error));
    this.#gzip?.pipe(this.#file);
  }

  async write(text: string | Uint8Array): Promise<void> {
    if (typeof text !== 'string') {
      await this.#send();
      await this.#put(text);
      return;
    }
    this.#block.push(text);
    this.#chars += text.length;
    if (this.#chars >= BLOCK_CHARS) await this.#send();
  }

  async finish(): Promise<void> {
    await this.#send();
    const last: Writable = this.#gzip ?? this.#file;
    last.end();
    await finished(this.#file).catch((error: unknown) => this.#fail(error));
    this.#check();
    try {
      await rename(this.#aside, this.#path);
    } catch (error) {
      throw unwritablePath(this.#path, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gzip?.destroy();
    this.#file.destroy();
    if (!this.#file.closed) await finished(this.#file).catch(() => undefined);
    await rm(this.#aside, { force: true });
  }

  async #send(): Promise<void> {
    this.#check();
    const text = this.#block.join('');
    this.#block = [];
    this.#chars = 0;
    if (text !== '') await this.#put(text);
  }

  async #put(content: string | Uint8Array): Promise<void> {
    const to: Writable = this.#gzip ?? this.#file;
    // The callback also comes with the error of a stream that has ended.
    await new Promise<void>((resolve) => void to.write(content, () => resolve()));
    this.#check();
  }

  #fail(error: unknown): void {
    this.#failed ??= error;
    // A gzip stream waits for a file that takes no more.
    this.#gzip?.destroy();
  }

  #check(): void {
    if (this.#failed !== null) throw unwritablePath(this.#path, this.#failed);
  }
}

const standardOutput = (): TextFile => ({
  write: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  finish: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});
