/** A folder of files that gets its name when it is complete. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { writing } from '../output/appendfile.ts';
import { asideOf, requireNewPath } from './aside.ts';

export interface FolderTree extends AsyncDisposable {
  /** `name`: path inside the folder. Throws UsageError for a path outside, UnusableError `output_unwritable`. */
  write(name: string, content: string | Uint8Array): Promise<void>;
  /** Adds to a file, buffered until `finish`. Throws as `write`. */
  append(name: string, text: string): Promise<void>;
  finish(): Promise<void>;
}

const BLOCK_CHARS = 64 * 1024;

/** Throws UsageError. Other programs may have written the ids in names. */
function requireInside(path: string, name: string): void {
  const parts = name.split('/');
  if (!name.includes('\0') && !parts.some((part) => part === '' || part === '.' || part === '..')) return;
  throw new UsageError(
    `${path}: the file ${JSON.stringify(name)} would be outside of it; correct the instance ids of the exported lines: no ids with "/", "." or ".." alone`,
  );
}

/** Errors as of {@link requireNewPath}. */
export async function openFolderTree(path: string): Promise<FolderTree> {
  await requireNewPath(path);
  const aside = asideOf(path);
  const made = new Set<string>();
  await writing(path, async () => {
    await rm(aside, { recursive: true, force: true });
    await mkdir(aside);
  });
  const blocks = new Map<string, string>();
  // Synchronous: thousands of small files take several times as long through the thread pool.
  const fileAt = (name: string): string => {
    const file = join(aside, name);
    const folder = dirname(file);
    if (!made.has(folder)) mkdirSync(folder, { recursive: true });
    made.add(folder);
    return file;
  };
  return {
    async write(name, content) {
      requireInside(path, name);
      await writing(path, async () => writeFileSync(fileAt(name), content));
    },
    async append(name, text) {
      requireInside(path, name);
      await writing(path, async () => {
        const block = (blocks.get(name) ?? '') + text;
        if (block.length < BLOCK_CHARS) blocks.set(name, block);
        else {
          blocks.delete(name);
          appendFileSync(fileAt(name), block);
        }
      });
    },
    finish: () =>
      writing(path, async () => {
        for (const [name, block] of blocks) appendFileSync(fileAt(name), block);
        // An empty folder may exist.
        await rmdir(path).catch(() => undefined);
        await rename(aside, path);
      }),
    [Symbol.asyncDispose]: () => rm(aside, { recursive: true, force: true }),
  };
}
