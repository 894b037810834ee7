/** Bundles of packages of the configured npm registry. The npm of this machine fetches them, so its proxy and credentials apply. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { errorMessage, tryParseJson, UnusableError, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { type BuildContext, LockFrame, type RelockOptions, requireAnswer, SafePath } from './builder.ts';
import { debianSources, unpackDebian } from './debian.ts';
import { addLibraries } from './libraries.ts';
import { resolveDebian, snapshotNow } from './lockpython.ts';
import { LIBRARIES } from './python.ts';
import { DebianPackages, PythonRequest, Snapshot } from './pythonlock.ts';
import { runProgram } from './run.ts';

const Package = z.strictObject({
  path: SafePath,
  name: z.string().regex(/^(@[a-z0-9~][\w.~-]*\/)?[a-z0-9~][\w.~-]*$/),
  version: z.string().regex(/^\d[\w.+-]*$/),
  integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/),
});

export const NpmLock = z.strictObject({
  ...LockFrame.shape,
  kind: z.literal('npm'),
  /** Dependencies as in package.json, from which {@link lockNpm} makes `packages`. */
  requests: z.record(z.string(), z.string()),
  /** Paths that are removed after the packages are unpacked, because the agent does not use them in a sandbox. */
  drop: z.array(SafePath).default([]),
  /** Files that their package does not mark as programs. */
  executable: z.array(SafePath).default([]),
  /** Programs that get a C library of their own from Debian packages, so that they start in any image; null: none needs one. */
  libraries: z
    .strictObject({
      programs: z.array(SafePath).min(1),
      request: PythonRequest.pick({ suite: true, debian: true, debian_without: true }),
      snapshot: Snapshot,
      debian: DebianPackages,
    })
    .nullable()
    .default(null),
  packages: z.array(Package),
});
export type NpmLock = z.infer<typeof NpmLock>;

/** @throws UsageError `integrity` if a package differs from the lock; UnusableError `registry` if it cannot be fetched */
export async function buildNpm(lock: NpmLock, folder: string, context: BuildContext): Promise<void> {
  const { signal, log } = context;
  const archives = join(folder, '.archives');
  await mkdir(archives);
  for (const [index, one] of lock.packages.entries()) {
    log(`fetching ${one.name} ${one.version} (${index + 1} of ${lock.packages.length})`);
    const archive = await fetchPackage(one, archives, signal);
    const target = join(folder, one.path);
    await mkdir(target, { recursive: true });
    log(`unpacking ${one.name} ${one.version}`);
    // The archives begin with one folder of any name. GNU tar refuses `..` and delays links that leave the folder.
    const options = ['--strip-components=1', '--no-same-owner', '--no-same-permissions', '--warning=none'];
    await runProgram('tar', ['-xzf', archive, '-C', target, ...options], { signal });
    await rm(archive);
  }
  await rm(archives, { recursive: true });
  for (const path of lock.drop) await rm(join(folder, path), { recursive: true, force: true });
  for (const path of lock.executable) await chmod(join(folder, path), 0o755);
  if (lock.libraries) await addOwnLibraries(lock.libraries, folder, context);
}

async function addOwnLibraries(
  { programs, snapshot, debian }: NonNullable<NpmLock['libraries']>,
  folder: string,
  { mount, signal, log }: BuildContext,
): Promise<void> {
  // The name begins as that of the folder, so what a killed installer leaves is removed with the folder.
  const root = await mkdtemp(join(dirname(folder), `${basename(folder)}-`));
  try {
    log(`fetching ${debian.length} Debian packages`);
    await unpackDebian(debian, root, await debianSources(snapshot), signal);
    await addLibraries({ folder, mount, libraries: join(root, LIBRARIES), signal }, programs);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

const Packed = z.tuple([z.object({ filename: z.string() })]);

async function fetchPackage(
  { name, version, integrity }: NpmLock['packages'][number],
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const options = ['--json', '--ignore-scripts', '--pack-destination', folder, '--loglevel=error'];
  const packed = await npm(['pack', `${name}@${version}`, ...options], folder, signal);
  const [{ filename }] = requireAnswer('npm pack', Packed, tryParseJson(packed));
  const archive = join(folder, filename.replace(/^@/, '').replaceAll('/', '-'));
  const hash = createHash('sha512');
  await pipeline(createReadStream(archive), hash, { signal });
  const found = `sha512-${hash.digest('base64')}`;
  if (found === integrity) return archive;
  throw new UsageError(
    `${name} ${version}: the registry has other contents than the lock (${found}, not ${integrity}): the registry or the lock is wrong`,
    { code: 'integrity' },
  );
}

/** Runs npm. Throws UnusableError. */
async function npm(args: readonly string[], cwd: string, signal: AbortSignal): Promise<string> {
  try {
    return await runProgram('npm', [...args, '--no-audit', '--no-fund', '--no-update-notifier'], {
      signal,
      cwd,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new UnusableError('registry', errorMessage(error), { cause: error });
  }
}

const LockedPackages = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({
      name: z.string().optional(),
      version: z.string().default(''),
      integrity: z.string().default(''),
      optional: z.boolean().optional(),
    }),
  ),
});

/**
 * Resolves the requests of a lock at the registry, without optional dependencies. The version of the agent replaces the version of the lock in the requests.
 *
 * @throws UnusableError `registry`; SwefarmError build_step if npm finds packages without a hash
 */
export async function lockNpm(lock: NpmLock, { version, signal }: RelockOptions): Promise<NpmLock> {
  const requests = Object.fromEntries(
    Object.entries(lock.requests).map(([name, wanted]) => [name, wanted.replace(lock.version, version)]),
  );
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-lock-'));
  try {
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: requests }));
    // Packages of another platform can be locked here too.
    await npm(['install', '--package-lock-only', '--ignore-scripts', '--force'], folder, signal);
    const written = tryParseJson(await readFile(join(folder, 'package-lock.json'), 'utf8'));
    const { packages } = requireAnswer('npm install', LockedPackages, written);
    const locked = Object.entries(packages).flatMap(
      ([path, { name, version: exact, integrity, optional }]) => {
        const own = name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
        return path === '' || optional ? [] : [{ path, name: own, version: exact, integrity }];
      },
    );
    const libraries = lock.libraries && (await lockLibraries(lock.libraries, folder, signal));
    const made = { ...lock, version, requests, libraries, packages: locked };
    return requireAnswer('npm install', NpmLock, made);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function lockLibraries(
  { programs, request }: NonNullable<NpmLock['libraries']>,
  folder: string,
  signal: AbortSignal,
): Promise<NpmLock['libraries']> {
  const snapshot = snapshotNow();
  const [mirror = ''] = await debianSources(snapshot);
  return { programs, request, snapshot, debian: await resolveDebian(request, mirror, folder, signal) };
}
