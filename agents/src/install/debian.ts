/** Fetches and unpacks packages of Debian without installing them, on any Linux. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorMessage, SwefarmError, UnusableError } from '@swefarm/shared';
import type { PythonLock } from './pythonlock.ts';
import { runProgram } from './run.ts';

type Package = PythonLock['debian'][number];

const DEFAULT_MIRROR = 'http://deb.debian.org/debian';
const ARCHIVE = 'http://snapshot.debian.org/archive/debian';
const AT_ONCE = 4;

/** Returns the mirror that apt of this machine uses, or the public one. */
export async function debianMirror(apt = '/etc/apt'): Promise<string> {
  const folder = join(apt, 'sources.list.d');
  const names = await readdir(folder).catch(() => []);
  const paths = [join(apt, 'sources.list'), ...names.sort().map((name) => join(folder, name))];
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => '')));
  const found = /^(?:deb\s+(?:\[[^\]]*\]\s+)?|URIs:\s*)(https?:\/\/\S+\/debian)\/?(?:\s|$)/m.exec(
    texts.join('\n'),
  );
  return found?.[1] ?? DEFAULT_MIRROR;
}

/**
 * Returns where packages are fetched, the best first. A mirror removes a version some weeks after its successor appears, so the second source
 * is the archive of all versions.
 */
export const debianSources = async (snapshot: string): Promise<string[]> => [
  await debianMirror(),
  `${ARCHIVE}/${snapshot}`,
];

/**
 * Unpacks packages into a folder. When it has failed, nothing writes into the folder any more.
 *
 * @throws UnusableError if no source has a package with the hash of the lock; the reason of the signal
 */
export async function unpackDebian(
  packages: readonly Package[],
  root: string,
  sources: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  await mkdir(root, { recursive: true });
  const waiting = [...packages];
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const bytes = await fetchPackage(next, sources, stop);
      const path = join(root, basename(next.file));
      await writeFile(path, bytes);
      await unpack(path, bytes, root, stop);
      await rm(path);
    }
  };
  const working = Array.from({ length: AT_ONCE }, () => work().catch((error) => failed.abort(error)));
  await Promise.all(working);
  stop.throwIfAborted();
}

async function fetchPackage(
  wanted: Package,
  sources: readonly string[],
  signal: AbortSignal,
): Promise<Buffer> {
  const problems: string[] = [];
  for (const source of sources) {
    const url = `${source}/${wanted.file}`;
    try {
      const response = await fetch(url, { signal });
      const bytes = Buffer.from(await response.arrayBuffer());
      const hash = createHash('sha256').update(bytes).digest('hex');
      if (response.ok && hash === wanted.sha256) return bytes;
      problems.push(`${url}: ${response.ok ? 'the hash differs from the lock' : `HTTP ${response.status}`}`);
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`${url}: ${errorMessage(error)}`);
    }
  }
  throw new UnusableError(
    'debian_package',
    `cannot fetch the Debian package ${wanted.name} ${wanted.version} (${problems.join('; ')}): make the lock of the agent again`,
  );
}

/** dpkg-deb reads every compression and needs no other program; other systems have tar and xz. */
async function unpack(path: string, bytes: Buffer, root: string, signal: AbortSignal): Promise<void> {
  try {
    await runProgram('dpkg-deb', ['-x', path, root], { signal });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const { name, content } = dataOf(bytes);
    const data = `${path}.${name}`;
    await writeFile(data, content);
    await runProgram('tar', ['-xf', data, '-C', root, '--no-same-owner'], { signal });
    await rm(data);
  }
}

/** Returns the member of a package (an `ar` archive) that has the files. Throws SwefarmError debian_package. */
export function dataOf(bytes: Buffer): { name: string; content: Buffer } {
  for (let at = 8; at + 60 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 16).replace(/\/?\s*$/, '');
    const size = Number(bytes.toString('latin1', at + 48, at + 58));
    if (!Number.isSafeInteger(size)) break;
    if (name.startsWith('data.tar')) return { name, content: bytes.subarray(at + 60, at + 60 + size) };
    at += 60 + size + (size % 2);
  }
  throw new SwefarmError('debian_package', 'the Debian package has no member data.tar');
}
