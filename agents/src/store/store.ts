/**
 * The installed bundles of a node or of a shared file system: `DIR/NAME/DIGEST/`. A bundle appears by a rename, complete or not at all, and
 * never changes, so workers read the store without a lock.
 */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage, ownFolder, replaceFile, tryParseJson, UnusableError } from '@swefarm/shared';
import { type Bundle, BundleManifest, mountPath } from '../bundle.ts';
import { digestOf, MANIFEST, makeReadable } from './contents.ts';
import { lockFile } from './exclusive.ts';

const PART = '.part-';

export type Installation = {
  name: string;
  /** sha256 of the lock file; the empty text for a bundle without one. */
  lock: string;
  version: string;
  /** Builds also if a bundle with this lock is installed, which may be damaged. */
  again?: boolean;
  /** Writes the files of the bundle into an empty folder. */
  build: (folder: string) => Promise<void>;
};

/**
 * Returns the bundle with this lock; with null, the newest of this name. Null: not installed.
 *
 * @throws system errors other than a missing folder
 */
export async function findBundle(dir: string, name: string, lock: string | null): Promise<Bundle | null> {
  const found = (await bundlesIn(join(dir, name))).filter(
    ({ manifest }) => manifest.name === name && (lock === null || manifest.lock === lock),
  );
  return found.at(-1) ?? null;
}

/** Returns all installed bundles by name, the newest of each name last. */
export async function listBundles(dir: string): Promise<Bundle[]> {
  const names = await namesIn(dir);
  return (await Promise.all(names.sort().map((name) => bundlesIn(join(dir, name))))).flat();
}

/** Digits of a lock that tell two bundles of one agent apart. */
const LOCK_DIGITS = 12;

/** Returns the installed bundles as the record of a worker names them: `NAME LOCK`. Rejects if the folder cannot be read. */
export const bundleLabels = async (dir: string): Promise<string[]> =>
  (await listBundles(dir)).map(({ manifest: { name, lock } }) => `${name} ${lock.slice(0, LOCK_DIGITS)}`);

/** Returns whether {@link bundleLabels} name a bundle that {@link findBundle} would find. */
export const isLabelled = (labels: readonly string[], name: string, lock: string | null): boolean =>
  labels.some((label) =>
    lock === null ? label.startsWith(`${name} `) : label === `${name} ${lock.slice(0, LOCK_DIGITS)}`,
  );

async function bundlesIn(folder: string): Promise<Bundle[]> {
  const names = (await namesIn(folder)).filter((name) => !name.startsWith('.'));
  const read = await Promise.all(
    names.map(async (name): Promise<Bundle[]> => {
      const text = await readFile(join(folder, name, MANIFEST), 'utf8').catch(() => '');
      const parsed = BundleManifest.safeParse(tryParseJson(text));
      return parsed.success ? [{ folder: join(folder, name), manifest: parsed.data }] : [];
    }),
  );
  return read.flat().sort((a, b) => (a.manifest.installed_at < b.manifest.installed_at ? -1 : 1));
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/**
 * Builds a bundle, unless one with the same lock is installed. Of several installers one builds and the others wait for it.
 *
 * @throws UsageError if the folder belongs to somebody else; UnusableError for a full disk; errors of `build`
 */
export async function installBundle(
  dir: string,
  wanted: Installation,
  signal: AbortSignal,
): Promise<{ bundle: Bundle; isNew: boolean }> {
  const { name, lock } = wanted;
  const root = await ownFolder(dir, { setting: 'agents_dir' });
  const folder = join(root, name);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await using _lock = await lockFile(join(folder, '.lock'), signal);
  await sweep(folder);
  const earlier = lock === '' || wanted.again ? null : await findBundle(root, name, lock);
  if (earlier) return { bundle: earlier, isNew: false };
  const part = await mkdtemp(join(folder, PART));
  try {
    await wanted.build(part);
    signal.throwIfAborted();
    return { bundle: await publish(folder, part, wanted, signal), isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    throw new UnusableError('disk', `${folder}: no space left for the bundle: ${errorMessage(error)}`, {
      cause: error,
    });
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}

/** Removes what installers left that were killed. The caller has the lock, so no other installer is at work. */
async function sweep(folder: string): Promise<void> {
  const parts = (await namesIn(folder)).filter((name) => name.startsWith(PART));
  await Promise.all(parts.map((name) => rm(join(folder, name), { recursive: true, force: true })));
}

async function publish(
  folder: string,
  part: string,
  { name, lock, version }: Installation,
  signal: AbortSignal,
): Promise<Bundle> {
  await makeReadable(part, mountPath(name));
  const { digest, bytes } = await digestOf(part, signal);
  const manifest: BundleManifest = {
    ...{ format: 'swefarm-bundle-1', name, lock, digest, version, bytes },
    installed_at: new Date().toISOString(),
  };
  await writeFile(join(part, MANIFEST), textOf(manifest), { mode: 0o644 });
  // The lock stands in the name, because two locks may have equal contents.
  const target = join(folder, `${digest.slice(0, 32)}${lock === '' ? '' : `-${lock.slice(0, 16)}`}`);
  const present = (await bundlesIn(folder)).find((bundle) => bundle.folder === target);
  if (present && (await isIntact(present, signal))) {
    // Running sandboxes may use the folder, so it stays; the newer time makes it the newest of its name.
    await replaceFile(join(target, MANIFEST), textOf(manifest), { mode: 0o644 });
  } else {
    await rename(target, `${part}-damaged`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await rename(part, target);
    await rm(`${part}-damaged`, { recursive: true, force: true });
  }
  return { folder: target, manifest };
}

const textOf = (manifest: BundleManifest): string => `${JSON.stringify(manifest, null, 2)}\n`;

/** Returns whether the contents of a bundle still have its digest. */
export const isIntact = async ({ folder, manifest }: Bundle, signal?: AbortSignal): Promise<boolean> =>
  (await digestOf(folder, signal)).digest === manifest.digest;
