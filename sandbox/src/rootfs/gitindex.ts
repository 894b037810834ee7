/**
 * Refreshes the git index of an unpacked image once, with the inodes and times of the files on this node. Without the refresh, the
 * first `git status` of each container reads the whole work tree.
 */
import { lstat } from 'node:fs/promises';
import { errorMessage, replaceFile } from '@swefarm/shared';
import { resolveInside } from '../images/treepath.ts';
import { INTERNAL_SPEC } from '../internal.ts';
import type { RuntimeSetup } from '../namespaces/setup.ts';
import type { Host } from './arguments.ts';
import type { RootImage } from './images.ts';
import { startRootfs } from './start.ts';

const TIMEOUT_MS = 120_000;
const MOST_BYTES = 100_000_000;
const DEFAULT_WORKDIR = '/testbed';
/** The repository is untrusted: git runs none of its programs, not even inside a sandbox. */
const SAFE = ['-c', 'safe.directory=*', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null'];

/** Refreshes the index of a new image. A failure is logged, because it only makes containers of the image slower. */
export async function refreshIndex(setup: RuntimeSetup, host: Host, image: RootImage): Promise<void> {
  const tree = image.lowers[0] as string;
  const signal = new AbortController().signal;
  const given = image.config.workdir;
  const workdir = given === '' || given === '/' ? DEFAULT_WORKDIR : given;
  const path = `${workdir}/.git/index`;
  try {
    const target = await resolveInside(tree, path);
    if (!target) return;
    await using container = await startRootfs(setup, host, { ...INTERNAL_SPEC, workdir }, image, signal);
    const line = ['git', ...SAFE, 'update-index', '-q', '--really-refresh'];
    // git exits with 1 if some files differ from the index, and refreshes the entries of all others.
    await container.exec(line, { timeoutMs: TIMEOUT_MS, maxOutputBytes: 1_000, signal });
    const index = await container.getFile(path, MOST_BYTES, signal);
    const found = await lstat(target);
    if (index && found.isFile()) await replaceFile(target, index, { mode: found.mode & 0o777 });
  } catch (error) {
    setup.log?.warn({ tree, error: errorMessage(error) }, 'the git index of an image was not refreshed');
  }
}
