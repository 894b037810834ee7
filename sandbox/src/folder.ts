/** Reads the files that an agent wrote into a folder of its sandbox. */
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { Container } from './runtime.ts';

const SCRIPT = readFileSync(new URL('./folder.sh', import.meta.url), 'utf8').replaceAll(/^ *#.*\n/gm, '');
const TIMEOUT_MS = 120_000;
/** Maximum size of a path with its separators. */
const PATH_BYTES = 4_200;
const NO_FOLDER = 40;

/** `files`: contents by path relative to the folder. `isComplete`: false if a limit, or the sandbox, left files out. */
export type FolderFiles = { files: Map<string, Buffer>; isComplete: boolean };

/**
 * Reads the regular files below a folder by one exec, without following links. Code in the sandbox can forge the result, within the limits.
 * Needs bash, find and base64 in the image. Returns null if there is no such folder. Throws errors of the runtime.
 * @param limits `maxBytes`: of all files together; a file that exceeds the rest is left out
 */
export async function readFolder(
  container: Pick<Container, 'exec'>,
  path: string,
  { maxBytes, maxFiles }: { maxBytes: number; maxFiles: number },
  signal: AbortSignal,
): Promise<FolderFiles | null> {
  const line = ['/bin/bash', '--norc', '-c', SCRIPT, 'folder', path, String(maxFiles), String(maxBytes)];
  const { exitCode, output, truncated } = await container.exec(line, {
    env: { LC_ALL: 'C' },
    cwd: '/',
    timeoutMs: TIMEOUT_MS,
    // base64 makes 4 bytes of 3, and ends each line of 76.
    maxOutputBytes: Math.ceil(maxBytes * 1.36) + (maxFiles + 1) * PATH_BYTES,
    signal,
  });
  if (exitCode === NO_FOLDER) return null;
  const files = new Map<string, Buffer>();
  let isComplete = false;
  let bytes = 0;
  const parts = truncated ? [] : output.toString('utf8').split('\0');
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [name = '', content = ''] = [posix.normalize(parts[at] ?? ''), parts[at + 1]];
    if (name === '.') isComplete = content === '' && files.size * 2 === at;
    const decoded = Buffer.from(content, 'base64');
    bytes += decoded.length;
    if (content === '-' || !isBelow(name) || files.size >= maxFiles || bytes > maxBytes) continue;
    files.set(name, decoded);
  }
  return { files, isComplete };
}

const isBelow = (path: string): boolean => path !== '.' && !/^(?:\/|\.\.(?:\/|$))/.test(path) && path !== '';
