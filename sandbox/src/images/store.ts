/**
 * Stores the unpacked images of this node, by digest. Layout under `<imagesDir>/v1[.uid<N>]`:
 *   images/<digest>/{tree/, image.json, used, synced}   names/<hash of name>.json   partial/<id>/   locks/<hash>
 * Other users have no access, because images contain set-id programs. A rename makes a complete image visible. Each use updates the
 * time of the file `used`, so that the longest unused image can be removed first.
 */
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bootId, errorMessage, newId, ownFolder, RolloutFailure, replaceFile } from '@swefarm/shared';
import { z } from 'zod';
import { ImageConfig } from './config.ts';
import { fingerprintOf } from './fingerprint.ts';
import { readJsonFile } from './jsonfile.ts';
import { withLock } from './lock.ts';
import { removeAbandoned, temporaryName } from './temporary.ts';

const run = promisify(execFile);

const ImageRecord = z.object({
  digest: z.string(),
  config: ImageConfig,
  size_bytes: z.number(),
  unpacked_at: z.string(),
  unpack_seconds: z.number(),
  /** Until the files of an image are synced to the disk, the image counts as complete only within the boot that unpacked it. */
  boot_id: z.string(),
  /** True: the lower layers that several images share, which no container uses alone. */
  shared: z.boolean().optional(),
  /** Digest of the tree of lower layers whose files the image shares. */
  below: z.string().optional(),
  /** See `fingerprintOf`; absent in records of older versions. */
  fingerprint: z.string().optional(),
});
const NameRecord = z.object({ name: z.string(), digest: z.string() });
type ImageRecord = z.infer<typeof ImageRecord>;
export type StoredImage = { digest: string; tree: string; config: ImageConfig };

/** Result of an unpacking. The files are in the folder `tree` of the partial image. */
export type Unpacked = {
  digest: string;
  config: ImageConfig;
  /** Bytes of files that the image does not share with other images of the store. */
  bytes: number;
  /** See `ImageRecord`. */
  shared?: boolean;
  below?: string;
};
export type Unpack = (partial: string) => Promise<Unpacked>;

export type ImageStore = Awaited<ReturnType<typeof openImageStore>>;

const BOOT_ID = bootId();

/** Opens the store, makes its folders and removes partial images of dead processes. */
export async function openImageStore(imagesDir: string) {
  // Other users may have images in the same folder.
  const uid = process.getuid?.() ?? 0;
  const root = join(imagesDir, uid === 0 ? 'v1' : `v1.uid${uid}`);
  await ownFolder(root, { setting: 'images_dir', closed: true });
  for (const folder of ['images', 'names', 'partial', 'locks']) {
    await mkdir(join(root, folder), { recursive: true, mode: 0o755 });
  }
  await removeAbandoned(join(root, 'partial'));
  const nameFile = (name: string): string => join(root, 'names', `${hash('sha256', name)}.json`);

  const find = (digest: string) => findImage(root, digest);
  /** Returns the digest that the name had when its image was last unpacked. */
  const digestOf = async (name: string): Promise<string | null> =>
    (await readJsonFile(nameFile(name), NameRecord))?.digest ?? null;

  return {
    root,
    find,
    digestOf,
    async name(name: string, digest: string): Promise<void> {
      // The temporary file is below `partial/`, where later workers remove leftovers.
      const aside = join(root, 'partial', `name-${newId()}`);
      await replaceFile(nameFile(name), JSON.stringify({ name, digest }), { aside });
    },
    /**
     * Returns the image of a digest (or of a name, if only the unpacking finds the digest). `unpack` runs unless another caller or
     * process has unpacked the image. Throws RolloutFailure node_disk / image_pull; RolloutFailures and aborts of `unpack` pass
     * unchanged.
     */
    ensure(key: string, unpack: Unpack, signal?: AbortSignal): Promise<StoredImage> {
      const lock = join(root, 'locks', hash('sha256', key));
      const work = async (): Promise<StoredImage> => {
        const known = key.startsWith('sha256:') ? key : await digestOf(key);
        const present = known === null ? null : await find(known);
        return present ?? (await unpackInto(root, unpack));
      };
      return withLock(lock, work, signal);
    },
    async usage(): Promise<{ count: number; bytes: number }> {
      const records = await recordsOf(root);
      const count = records.filter(({ shared }) => !shared).length;
      return { count, bytes: records.reduce((sum, { size_bytes }) => sum + size_bytes, 0) };
    },
    /** Returns the removable images, without trees that take no space (the host's own tree). */
    list: () => listImages(root),
    /** Compares the metadata of an image's files with those of its unpacking. True for records of older versions. */
    isUnchanged: async (digest: string): Promise<boolean> => isUnchanged(folderOf(root, digest)),
    touch: async (digest: string): Promise<void> => stamp(folderOf(root, digest)),
    drop: async (digest: string): Promise<void> => discard(root, folderOf(root, digest)),
  };
}

/** Throws for text that is no digest, because the content of an image must not name another folder. */
function folderOf(root: string, digest: string): string {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? [];
  if (hex === undefined) throw new Error(`"${digest}" is no digest, sha256: and 64 hexadecimal digits`);
  return join(root, 'images', `sha256-${hex}`);
}

async function findImage(root: string, digest: string): Promise<StoredImage | null> {
  const folder = folderOf(root, digest);
  if (!existsSync(join(folder, 'image.json'))) return null;
  const record = await readJsonFile(join(folder, 'image.json'), ImageRecord);
  if (record === null || (record.boot_id !== BOOT_ID && !existsSync(join(folder, 'synced')))) {
    await discard(root, folder);
    return null;
  }
  await stamp(folder);
  return { digest: record.digest, tree: join(folder, 'tree'), config: record.config };
}

/** Records a use. If the file `used` is missing, the image is being removed, and the start of a container from the image will fail. */
async function stamp(folder: string): Promise<void> {
  const now = new Date();
  await utimes(join(folder, 'used'), now, now).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

async function recordsOf(root: string): Promise<ImageRecord[]> {
  const records = await Promise.all(
    (await readdir(join(root, 'images'))).map((folder) =>
      readJsonFile(join(root, 'images', folder, 'image.json'), ImageRecord),
    ),
  );
  return records.filter((record) => record !== null);
}

/** Returns the names of images by digest. Names of removed images remain in the store. */
async function namesOf(root: string): Promise<Map<string, string[]>> {
  const names = new Map<string, string[]>();
  for (const file of await readdir(join(root, 'names'))) {
    const record = await readJsonFile(join(root, 'names', file), NameRecord);
    if (record) names.set(record.digest, [...(names.get(record.digest) ?? []), record.name]);
  }
  return names;
}

async function listImages(root: string) {
  const [records, names] = await Promise.all([recordsOf(root), namesOf(root)]);
  const costly = records.filter(({ size_bytes }) => size_bytes > 0);
  return await Promise.all(
    costly.map(async ({ digest, size_bytes: bytes, shared = false, below }) => {
      const used = await stat(join(folderOf(root, digest), 'used')).catch(() => null);
      const usedAt = used?.mtimeMs ?? Date.now();
      return { digest, names: names.get(digest) ?? [], bytes, usedAt, shared, below };
    }),
  );
}

async function isUnchanged(folder: string): Promise<boolean> {
  const record = await readJsonFile(join(folder, 'image.json'), ImageRecord);
  if (!record?.fingerprint) return record !== null;
  return (await fingerprintOf(join(folder, 'tree'))) === record.fingerprint;
}

async function unpackInto(root: string, unpack: Unpack): Promise<StoredImage> {
  const partial = join(root, 'partial', temporaryName());
  const startedAt = Date.now();
  try {
    await mkdir(join(partial, 'tree'), { recursive: true, mode: 0o755 });
    const { digest, config, bytes, shared, below } = await unpack(partial);
    // Containers do not use shared trees alone, so only images are checked.
    const fingerprint = shared ? null : await fingerprintOf(join(partial, 'tree'));
    const record: ImageRecord = {
      digest,
      config,
      size_bytes: bytes,
      unpacked_at: new Date().toISOString(),
      unpack_seconds: (Date.now() - startedAt) / 1000,
      boot_id: BOOT_ID,
      ...(shared ? { shared } : {}),
      ...(below ? { below } : {}),
      ...(fingerprint ? { fingerprint } : {}),
    };
    await writeFile(join(partial, 'image.json'), JSON.stringify(record));
    await writeFile(join(partial, 'used'), '');
    const folder = folderOf(root, digest);
    await rename(partial, folder).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
      // The folder is an image of the same digest, unpacked under another name, or an incomplete image.
      if (await findImage(root, digest)) return;
      await discard(root, folder);
      await rename(partial, folder);
    });
    markSynced(folder);
    return { digest, tree: join(folder, 'tree'), config };
  } catch (error) {
    throw storeFailure(error, root);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Writes the mark `synced` in the background: within this boot the image is usable without the mark. */
function markSynced(folder: string): void {
  execFile('sync', ['-f', folder], (error) => {
    if (error) return;
    // If the mark cannot be written, the image is unpacked again after the next boot.
    writeFile(join(folder, 'synced'), '').catch(() => undefined);
  }).unref();
}

function storeFailure(error: unknown, root: string): unknown {
  const { code, name } = error as NodeJS.ErrnoException;
  if (error instanceof RolloutFailure || name === 'AbortError') return error;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  const message = `unpacking into ${root}: ${errorMessage(error)}`.slice(0, 400);
  return new RolloutFailure(full ? 'node_disk' : 'image_pull', message, { cause: error });
}

async function discard(root: string, folder: string): Promise<void> {
  const doomed = join(root, 'partial', temporaryName());
  await rename(folder, doomed).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rm(doomed, { recursive: true, force: true }).catch(async () => {
    // A worker without root cannot remove unreadable folders before it adds permissions.
    await run('chmod', ['-R', 'u+rwX', '--', doomed]).catch(() => undefined);
    await rm(doomed, { recursive: true, force: true });
  });
}

/** Throws RolloutFailure node_disk when fewer than `bytes` are free below `folder`. */
export async function requireDisk(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= bytes) return;
  const mega = (count: number): string => `${Math.round(count / 1e6)} MB`;
  throw new RolloutFailure(
    'node_disk',
    `unpacking needs ${mega(bytes)} in ${folder}, ${mega(free)} are free`,
  );
}
