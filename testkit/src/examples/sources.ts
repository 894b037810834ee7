/** Fetches from PyPI: the two source archives of an example, checked by their sha256, and the pinned wheels. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { SwefarmError } from '@swefarm/shared';
import { cached, cacheKey } from './cache.ts';
import type { Recipe } from './recipe.ts';
import { run } from './run.ts';

const PIP = ['python3', '-m', 'pip', '--disable-pip-version-check', 'download', '-q', '--no-deps'] as const;

/**
 * Returns the path of the sdist in the cache. Throws SwefarmError `example_download` when pip cannot fetch it and
 * `example_checksum` when the archive differs from the recipe's.
 */
export async function fetchSdist(
  cacheDir: string,
  recipe: Recipe,
  release: Recipe['fixed'],
  signal: AbortSignal,
): Promise<string> {
  const requirement = `${recipe.package}==${release.version}`;
  const folder = join(cacheDir, 'sdists', `${recipe.package}-${release.version}`);
  // We choose the name in the cache, because PyPI spells the archives of one package in several ways.
  await cached(folder, async (draft) => {
    await mkdir(draft, { recursive: true });
    await pip(['--no-binary', recipe.package, '-d', draft, requirement], requirement, signal);
    const [archive] = (await readdir(draft)).filter((name) => name.endsWith('.tar.gz'));
    if (archive === undefined) {
      throw new SwefarmError('example_download', `${requirement} has no .tar.gz source archive`);
    }
    await rename(join(draft, archive), join(draft, 'sdist.tar.gz'));
  });
  const path = join(folder, 'sdist.tar.gz');
  const actual = createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
  if (actual !== release.sdist_sha256) {
    throw new SwefarmError(
      'example_checksum',
      `${requirement}: the source archive has sha256 ${actual}, the recipe ${recipe.instance_id} expects ` +
        `${release.sdist_sha256}; remove ${folder} if its download was damaged`,
    );
  }
  return path;
}

/** Returns a folder with exactly these pinned wheels. Throws SwefarmError `example_download`. */
export async function fetchWheels(
  cacheDir: string,
  requirements: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const sorted = [...new Set(requirements)].sort();
  return cached(join(cacheDir, 'wheels', cacheKey(sorted)), async (draft) => {
    await mkdir(draft, { recursive: true });
    if (sorted.length === 0) return;
    await pip(['--only-binary', ':all:', '-d', draft, ...sorted], 'the wheels', signal);
  });
}

/** Unpacks an sdist into `dest`, without its top-level folder. */
export async function unpackSdist(archive: string, dest: string, signal: AbortSignal): Promise<void> {
  await mkdir(dest, { recursive: true });
  const flags = ['--strip-components=1', '--no-same-owner', '--no-same-permissions'];
  // The umask then decides the modes; git stores only the executable bit.
  await run(['tar', '-xzf', archive, '-C', dest, ...flags], { signal });
}

async function pip(args: readonly string[], what: string, signal: AbortSignal): Promise<void> {
  try {
    await run([...PIP, ...args], { signal });
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new SwefarmError('example_download', `pip could not fetch ${what}`, { cause, retryable: true });
  }
}
