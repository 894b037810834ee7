/** Writes a text file under a temporary name and renames it when it is complete. A name that ends in .gz selects gzip. */
import { open, rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { writing } from '../output/appendfile.ts';
import { asideOf, requireNewPath } from './aside.ts';

export interface TextFile extends AsyncDisposable {
  /** Writes text, or UTF-8 bytes that the caller does not change. Throws UnusableError `output_unwritable`, also if an earlier write failed. */
  write(text: string | Uint8Array): Promise<void>;
  finish(): Promise<void>;
}

/** Higher levels hardly reduce the size of trajectories. */
const GZIP_LEVEL = 3;
/** Approximate bytes of one write, before compression. */
const BLOCK_BYTES = 1024 ** 2;

/** Opens the file at `path`, or standard output for `-`. Throws the errors of {@link requireNewPath}. */
export async function openTextFile(path: string): Promise<TextFile> {
  if (path === '-') return standardOutput();
  await requireNewPath(path);
  const aside = asideOf(path);
  const file = await writing(path, () => open(aside, 'w'));
  const gzip = path.endsWith('.gz') ? openGzip() : null;
  let block: Uint8Array[] = [];
  let size = 0;
  let written = Promise.resolve();
  /** Writes the block while the caller renders the next one. */
  const flush = async (isLast = false): Promise<void> => {
    const bytes = Buffer.concat(block);
    block = [];
    size = 0;
    await written;
    written = writing(path, async () => {
      await file.appendFile(gzip ? await gzip(bytes, isLast) : bytes);
    });
    // The next call awaits this promise; without this handler, its error would be an unhandled rejection.
    written.catch(() => undefined);
  };
  return {
    async write(text) {
      const bytes = typeof text === 'string' ? Buffer.from(text) : text;
      block.push(bytes);
      size += bytes.length;
      if (size >= BLOCK_BYTES) await flush();
    },
    async finish() {
      await flush(true);
      await written;
      await writing(path, async () => {
        await file.sync();
        await rename(aside, path);
      });
    },
    async [Symbol.asyncDispose]() {
      await written.catch(() => undefined);
      await file.close();
      await rm(aside, { force: true });
    },
  };
}

/**
 * Returns a function that compresses a block and resolves with the bytes that are ready. All blocks are one member, because some readers
 * refuse further members or ignore them.
 */
function openGzip(): (block: Uint8Array, isLast: boolean) => Promise<Uint8Array> {
  const gzip = createGzip({ level: GZIP_LEVEL });
  const ready: Uint8Array[] = [];
  gzip.on('data', (bytes: Buffer) => ready.push(bytes));
  return async (block, isLast) => {
    if (isLast) await finished(gzip.end(block));
    else await new Promise<void>((resolve) => void gzip.write(block, () => resolve()));
    return Buffer.concat(ready.splice(0));
  };
}

const standardOutput = (): TextFile => ({
  write: (text) =>
    writing('standard output', async () => {
      await new Promise<void>((resolve, reject) => {
        process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
      });
    }),
  finish: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});
