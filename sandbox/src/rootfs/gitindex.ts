/**
 * Refreshes the git index of an unpacked image once, with the inodes and times of the files on this node. Without the refresh, the
 * first `git status` of each container reads the whole work tree.
 */
import { lstatSync } from 'node:fs';
import { replaceFile } from '@swefarm/shared';
import { resolveInside } from '../images/treepath.ts';
import type { Container } from '../runtime.ts';

const TIMEOUT_MS = 120_000;
const MOST_BYTES = 100_000_000;
const DEFAULT_WORKDIR = '/testbed';
/** The repository is untrusted: git runs none of its programs, not even inside a sandbox. */
const SAFE = ['-c', 'safe.directory=*', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null'];

/** Returns the folder of the repository; null if that folder of the tree has no repository. */
export function repositoryOf(tree: string, workdir: string): string | null {
  const folder = workdir === '' || workdir === '/' ? DEFAULT_WORKDIR : workdir;
  return resolveInside(tree, `${folder}/.git/index`) ? folder : null;
}

/** @param container a container of the tree, without other processes */
export async function refreshIndex(container: Container, tree: string, signal: AbortSignal): Promise<void> {
  const line = ['git', ...SAFE, 'update-index', '-q', '--really-refresh'];
  // git exits with 1 if some files differ from the index, and refreshes the entries of all others.
  await container.exec(line, { timeoutMs: TIMEOUT_MS, maxOutputBytes: 1_000, signal });
  const index = await container.getFile(`${container.workdir}/.git/index`, MOST_BYTES, signal);
  const target = resolveInside(tree, `${container.workdir}/.git/index`);
  if (!index || !target) return;
  const found = lstatSync(target);
  if (!found.isFile()) return;
  await replaceFile(target, index, { mode: found.mode & 0o777 });
}
