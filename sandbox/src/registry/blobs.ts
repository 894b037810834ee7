/**
 * Stores blobs by digest, for the processes of a node or, on a shared file system, of a cluster. Layout:
 *   sha256/<hex>   partial/<hex>.<boot>.<process>   locks/<hex>
 * A rename makes a complete, checked blob visible. A partial blob of a dead process of this boot is continued.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { bootId, exponentialBackoff, ownFolder, ownStartMark, startPatience } from '@swefarm/shared';
import { withLock } from '../images/lock.ts';
import { isOwnerGone, temporaryName } from '../images/temporary.ts';
import type { BlobPart } from './client.ts';
import { codeOf, DigestError, isPassing } from './errors.ts';

export type WantedBlob = { digest: string; size: number };
export type BlobStore = Awaited<ReturnType<typeof openBlobStore>>;

/** Tries without a new byte. A connection that breaks again and again still makes progress. */
const TRIES = 5;
const backoff = exponentialBackoff(500, 8_000);
const BOOT = bootId();
/** Age from which a partial blob of another node, or of an invisible process, is removed. */
const STALE_MS = 2 * 3_600_000;

const hexOf = (digest: string): string => digest.slice('sha256:'.length);

/**
 * Opens a store of blobs and makes its folders.
 * @param folder belongs to this user. Other processes of the user, also on other nodes, may use it at the same time.
 * @param setting names the folder in errors
 */
export async function openBlobStore(folder: string, setting: string) {
  const root = await ownFolder(folder, { setting });
  for (const name of ['sha256', 'partial', 'locks'])
    await mkdir(join(root, name), { recursive: true, mode: 0o755 });
  const pathOf = (digest: string): string => join(root, 'sha256', hexOf(digest));
  const present = async ({ digest, size }: WantedBlob): Promise<string | null> => {
    const path = pathOf(digest);
    if ((await stat(path).catch(() => null))?.size !== size) return null;
    await touch(path);
    return path;
  };
  return {
    folder: root,
    /**
     * Returns the path of a blob, and first fetches a missing blob. `read` opens the blob from a byte on. Throws DigestError, the last error
     * of `read`, errors of the system, and the signal's reason.
     */
    async ensure(
      blob: WantedBlob,
      read: (offset: number) => Promise<BlobPart>,
      signal: AbortSignal,
    ): Promise<string> {
      const found = await present(blob);
      if (found) return found;
      const fetch = async (): Promise<string> =>
        (await present(blob)) ?? (await fetchBlob(root, blob, read, signal));
      return await withLock(join(root, 'locks', hexOf(blob.digest)), fetch, signal);
    },
    drop: (digest: string): Promise<void> => rm(pathOf(digest), { force: true }),
    /** Writes a small blob whose digest the caller has checked. */
    async put(digest: string, bytes: Buffer): Promise<void> {
      const partial = join(root, 'partial', `${hexOf(digest)}.${BOOT}.${temporaryName()}`);
      await using file = await open(partial, 'wx', 0o644);
      await file.writeFile(bytes);
      await rename(partial, pathOf(digest));
    },
    async list(): Promise<{ digest: string; names: string[]; usedAt: number }[]> {
      const names = await readdir(join(root, 'sha256'));
      const all = names.map(async (name) => {
        const found = await stat(join(root, 'sha256', name)).catch(() => null);
        return found ? [{ digest: `sha256:${name}`, names: [], usedAt: found.mtimeMs }] : [];
      });
      return (await Promise.all(all)).flat();
    },
  };
}

/** Records a use of a blob, for its eviction. */
async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

async function fetchBlob(
  root: string,
  blob: WantedBlob,
  read: (offset: number) => Promise<BlobPart>,
  signal: AbortSignal,
): Promise<string> {
  const hex = hexOf(blob.digest);
  const partial = await claimPartial(root, hex);
  try {
    await download(partial, blob, read, signal);
  } catch (error) {
    // A wrong or truncated disk cannot be continued. Other partial blobs are continued by the next call.
    if (error instanceof DigestError || /^(ENOSPC|EDQUOT)$/.test(codeOf(error)))
      await rm(partial, { force: true });
    throw error;
  }
  const path = join(root, 'sha256', hex);
  await rename(partial, path);
  return path;
}

/** Returns the path of a partial blob of this process: new, or taken from an earlier call or a dead process of this boot. */
async function claimPartial(root: string, hex: string): Promise<string> {
  const folder = join(root, 'partial');
  const own = join(folder, `${hex}.${BOOT}.${temporaryName()}`);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${hex}.`)) continue;
    const path = join(folder, name);
    const [, boot, pid = '', started = ''] = /\.([^.]+)\.(\d+)-([^-]+)-[^.]*$/.exec(name) ?? [];
    const touchedAt = (await stat(path).catch(() => null))?.mtimeMs ?? Date.now();
    if (boot !== BOOT) {
      // The processes of another node cannot be asked.
      if (Date.now() - touchedAt > STALE_MS) await rm(path, { force: true });
      continue;
    }
    // The lock of the blob excludes other calls of this process.
    const isOwn = pid === String(process.pid) && started === ownStartMark();
    if (!isOwn && !isOwnerGone(pid, started, touchedAt)) continue;
    const taken = await rename(path, own).then(
      () => true,
      () => false,
    );
    if (taken) break;
  }
  return own;
}

async function download(
  partial: string,
  { digest, size }: WantedBlob,
  read: (offset: number) => Promise<BlobPart>,
  signal: AbortSignal,
): Promise<void> {
  await using file = await open(partial, 'a+', 0o644);
  let hash = createHash('sha256');
  let at = 0;
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
    hash.update(chunk as Buffer);
    at += (chunk as Buffer).length;
  }
  let patience = startPatience({ pauseMs: backoff, tries: TRIES, signal });
  while (at < size || size === 0) {
    const before = at;
    try {
      const { offset, body } = await read(at);
      if (offset !== at) {
        // The registry ignores ranges, so the blob begins anew.
        if (offset !== 0) throw new Error(`a registry answered byte ${offset} instead of byte ${at}`);
        await file.truncate(0);
        hash = createHash('sha256');
        at = 0;
      }
      for await (const chunk of body as AsyncIterable<Buffer>) {
        await file.appendFile(chunk);
        hash.update(chunk);
        at += chunk.length;
        if (at > size) throw new DigestError(`blob ${digest} has more than its ${size} bytes`);
      }
      if (at === size) break;
      throw Object.assign(new Error(`blob ${digest} ended after ${at} of ${size} bytes`), {
        code: 'ECONNRESET',
      });
    } catch (error) {
      signal.throwIfAborted();
      if (at > before) patience = startPatience({ pauseMs: backoff, tries: TRIES, signal });
      if (!isPassing(error) || patience.isOver()) throw error;
      await patience.pause();
    }
  }
  const found = `sha256:${hash.digest('hex')}`;
  if (found !== digest) throw new DigestError(`a blob has digest ${found}, not ${digest}`);
}
