/**
 * Stores blobs by digest, for the processes of a node or, on a shared file system, of a cluster. Layout:
 *   sha256/<hex>   partial/<hex>.<boot>.<process>   locks/<hex>
 * A rename makes a complete, checked blob visible. A partial blob of a dead process of this boot is continued.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { bootId, exponentialBackoff, ownFolder, ownStartMark, startPatience } from '@swefarm/shared';
import { withLock } from '../images/lock.ts';
import { isOwnerGone, temporaryName } from '../images/temporary.ts';
import type { BlobPart } from './client.ts';
import { codeOf, DigestError, isPassing } from './errors.ts';

export type WantedBlob = { digest: string; size: number };
export type BlobStore = Awaited<ReturnType<typeof openBlobStore>>;

/** Maximum consecutive attempts without a new byte. An attempt that receives bytes resets the count. */
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
    /** Removes a blob whose content has another digest. */
    async dropDamaged(digest: string): Promise<void> {
      const path = pathOf(digest);
      if ((await digestOfFile(path).catch(() => digest)) !== digest) await rm(path, { force: true });
    },
    /** Removes the partial blobs that no call continues: those of processes that ended, and of earlier calls of this process. */
    sweep: (): Promise<void> => sweepPartials(join(root, 'partial')),
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

export async function digestOfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return `sha256:${hash.digest('hex')}`;
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
    // Removes the partial file after a wrong digest or a full disk. Later calls resume other partial files.
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
    const { isOfThisBoot, isFree, isStale } = await stateOf(path);
    if (!isOfThisBoot && isStale) await rm(path, { force: true });
    // The caller holds the blob's lock, so no other call of this process writes this partial file.
    if (!isFree) continue;
    const taken = await rename(path, own).then(
      () => true,
      () => false,
    );
    if (taken) break;
  }
  return own;
}

/** `isFree`: its process is this one, or ended. `isStale`: nothing was written for hours. */
async function stateOf(path: string): Promise<{ isOfThisBoot: boolean; isFree: boolean; isStale: boolean }> {
  const [, boot, pid = '', started = ''] = /\.([^.]+)\.(\d+)-([^-]+)-[^.]*$/.exec(path) ?? [];
  const touchedAt = (await stat(path).catch(() => null))?.mtimeMs ?? Date.now();
  const isOfThisBoot = boot === BOOT;
  const isOwn = pid === String(process.pid) && started === ownStartMark();
  return {
    isOfThisBoot,
    // This node cannot check whether a process of another node is alive, so only the file's age decides.
    isFree: isOfThisBoot && (isOwn || isOwnerGone(pid, started, touchedAt)),
    isStale: Date.now() - touchedAt > STALE_MS,
  };
}

async function sweepPartials(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const { isOfThisBoot, isFree, isStale } = await stateOf(path);
    if (isStale && (isFree || !isOfThisBoot)) await rm(path, { force: true });
  }
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
