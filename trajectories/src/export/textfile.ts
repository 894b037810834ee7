/** Writes a text file under a temporary name and renames it when it is complete. A name that ends in .gz selects gzip. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { unwritable, writing } from '../output/appendfile.ts';
import { asideOf, requireNewPath } from './aside.ts';

export interface TextFile extends AsyncDisposable {
  /** Resolves when the stream accepts more text. Throws UnusableError `output_unwritable`. */
  write(text: string | Uint8Array): Promise<void>;
  finish(): Promise<void>;
}

/** Higher levels hardly reduce the size of trajectories. */
const GZIP_LEVEL = 3;
const BLOCK_CHARS = 256 * 1024;

/** Opens the file at `path`, or standard output for `-`. Throws the errors of {@link requireNewPath}. */
export async function openTextFile(path: string): Promise<TextFile> {
  if (path === '-') return standardOutput();
  await requireNewPath(path);
  const aside = asideOf(path);
  const file = createWriteStream(aside, { flush: true, highWaterMark: 1024 * 1024 });
  const gzip = path.endsWith('.gz') ? createGzip({ level: GZIP_LEVEL }) : null;
  const sink: Writable = gzip ?? file;
  let failed: unknown = null;
  const fail = (error: unknown): void => {
    failed ??= error;
    // Without this call, the gzip stream would wait forever for the file, which accepts nothing after an error.
    gzip?.destroy();
  };
  const check = (): void => {
    if (failed !== null) throw unwritable(path, failed);
  };
  file.on('error', fail);
  gzip?.on('error', fail);
  gzip?.pipe(file);
  let block: string[] = [];
  let characters = 0;
  const put = async (content: string | Uint8Array): Promise<void> => {
    check();
    // The callback is called for errors too, and `check` throws them.
    await new Promise<void>((resolve) => void sink.write(content, () => resolve()));
    check();
  };
  const flush = async (): Promise<void> => {
    const text = block.join('');
    block = [];
    characters = 0;
    if (text !== '') await put(text);
    check();
  };
  return {
    async write(text) {
      if (typeof text !== 'string') {
        await flush();
        return await put(text);
      }
      block.push(text);
      characters += text.length;
      if (characters >= BLOCK_CHARS) await flush();
    },
    async finish() {
      await flush();
      sink.end();
      await finished(file).catch(fail);
      check();
      await writing(path, () => rename(aside, path));
    },
    async [Symbol.asyncDispose]() {
      gzip?.destroy();
      file.destroy();
      if (!file.closed) await finished(file).catch(() => undefined);
      await rm(aside, { force: true });
    },
  };
}

const standardOutput = (): TextFile => ({
  write: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  finish: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});
