/**
 * Refreshes the git index of an unpacked image once, with the inodes and times that its files have on this node. Without it, the first
 * `git status` of each container reads the whole work tree.
 */
import { lstatSync } from 'node:fs';
import { replaceFile } from '@swefarm/shared';
import { resolveInside } from '../images/treepath.ts';
import type { Container } from '../runtime.ts';

const TIMEOUT_MS = 120_000;
const MOST_BYTES = 100_000_000;
const DEFAULT_WORKDIR = '/testbed';
/** The repository is untrusted; even inside a sandbox git runs none of its programs. */
const SAFE = ['-c', 'safe.directory=*', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null'];

/** The folder whose index is refreshed; null when the tree has no repository there. */
export function repositoryOf(tree: string, workdir: string): string | null {
  const folder = workdir === '' || workdir === '/' ? DEFAULT_WORKDIR : workdir;
  return resolveInside(tree, `${folder}/.git/index`) ? folder : null;
}

/** @param container runs on the tree; nothing else runs in it. */
export async function refreshIndex(container: Container, tree: string, signal: AbortSignal): Promise<void> {
  const line = ['git', ...SAFE, 'update-index', '-q', '--really-refresh'];
  // Files that differ from the index make it exit with 1; the others are refreshed all the same.
  await container.exec(line, { timeoutMs: TIMEOUT_MS, maxOutputBytes: 1_000, signal });
  const index = await container.getFile(`${container.workdir}/.git/index`, MOST_BYTES, signal);
  const target = resolveInside(tree, `${container.workdir}/.git/index`);
  if (!index || !target) return;
  const found = lstatSync(target);
  if (!found.isFile()) return;
  await replaceFile(target, index, { mode: found.mode & 0o777 });
}
