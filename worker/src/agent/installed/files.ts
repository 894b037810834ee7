/** Reads files that code in a sandbox wrote, in bounded number and size. */
import { posix } from 'node:path';
import type { Container } from '@swefarm/sandbox';
import { SwefarmError } from '@swefarm/shared';

const LIST_MS = 30_000;
const MOST_LIST_BYTES = 1024 ** 2;
const MOST_DEPTH = 8;

/** `name`: path in the folder; empty for a single file. `bytes`: size of the file, of which `content` is the start or nothing. */
export type ReadFile = { name: string; content: Buffer; bytes: number };

/**
 * Reads a regular file, or the regular files of a folder in the order of their names; links are not followed. A file that exceeds what is
 * left of `maxBytes` comes without content. Throws RolloutFailure of the sandbox.
 */
export async function readFiles(
  container: Container,
  path: string,
  { maxBytes, maxFiles }: { maxBytes: number; maxFiles: number },
  signal: AbortSignal,
): Promise<ReadFile[]> {
  const line = ['find', '-P', path, '-maxdepth', String(MOST_DEPTH), '-type', 'f', '-printf', '%s %P\\0'];
  const options = { timeoutMs: LIST_MS, maxOutputBytes: MOST_LIST_BYTES, env: { LC_ALL: 'C' }, signal };
  const { output } = await container.exec(line, options);
  const files = [...output.toString('utf8').matchAll(/(?:^|\0)(\d{1,15}) ([^\0]*)(?=\0)/g)]
    .map(([, size, name = '']) => ({ name, bytes: Number(size) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .slice(0, maxFiles);
  let left = maxBytes;
  const read: ReadFile[] = [];
  for (const { name, bytes } of files) {
    const content = bytes > left ? null : await contentOf(container, posix.join(path, name), left, signal);
    left -= content?.length ?? 0;
    read.push({ name, bytes, content: content ?? Buffer.alloc(0) });
  }
  return read;
}

async function contentOf(container: Container, path: string, maxBytes: number, signal: AbortSignal) {
  try {
    return await container.getFile(path, maxBytes, signal);
  } catch (error) {
    if (error instanceof SwefarmError && error.code === 'file_too_large') return null;
    throw error;
  }
}
