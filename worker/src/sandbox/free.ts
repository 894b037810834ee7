/** What is left of a node's disk, where its sandboxes write: on a full one, neither an agent nor tests can show anything. */
import { statfs } from 'node:fs/promises';
import type { Runtime } from './runtime.ts';

const FULL_BYTES = 16 * 1024 ** 2;

/** Bytes free for this user below `folder`; null when the folder cannot be seen (an engine on another machine). */
export async function diskFree(folder: string): Promise<number | null> {
  return statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => null,
  );
}

/** False also when it cannot be seen. */
export async function diskIsFull(runtime: Pick<Runtime, 'diskFree'>): Promise<boolean> {
  const free = await runtime.diskFree?.().catch(() => null);
  return typeof free === 'number' && free < FULL_BYTES;
}
