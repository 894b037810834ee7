/** Stores artifacts as files in a directory that all nodes share. */

import { mkdir, open, readdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import { replaceWith } from '../files/replace.ts';
import { type AttemptName, parseRolloutId } from '../records/ids.ts';
import type { ArtifactLimits, ArtifactStore, ArtifactUsage, StoredArtifact } from './store.ts';

/** Suffix of artifacts; files with other names are neither counted nor removed. */
const SUFFIX = '.swefarm.json.gz';
const PART = 1_000;
/** Matches the name of an artifact without its suffix: `ROLLOUT.ATTEMPT.CLAIM`. */
const NAME = /^(.+)\.(\d+)\.([a-z][0-9a-z]*)$/;
/** Interval of the counts. Reading a shared directory is slow, so this process adds only its own writes between two counts. */
const WALK_EVERY_MS = 30_000;

/** The bytes of a directory: counted at intervals, with the writes of this process in between. */
function openAccount(root: string, limits: ArtifactLimits) {
  let known: { at: number; bytes: number; files: number } | null = null;
  const usage = async (): Promise<ArtifactUsage> => {
    if (known === null || Date.now() - known.at > WALK_EVERY_MS) {
      known = { at: Date.now(), ...(await walk(root, Date.now() - limits.ttlSeconds * 1000)) };
    }
    return { used_bytes: known.bytes, budget_bytes: limits.budgetBytes, artifacts: known.files };
  };
  return {
    usage,
    /** Throws SwefarmError `artifact_budget`, or the error of the count. */
    async requireRoom(bytes: number): Promise<void> {
      const { used_bytes } = await usage().catch((error: unknown) => {
        throw writeError(error, root);
      });
      if (used_bytes + bytes <= limits.budgetBytes) return;
      throw new SwefarmError(
        'artifact_budget',
        `an artifact of ${bytes} bytes does not fit: ${used_bytes} of ${limits.budgetBytes} bytes are used in ${root}`,
        { retryable: true },
      );
    },
    count(bytes: number, files: number): void {
      if (known) known = { ...known, bytes: known.bytes + bytes, files: known.files + files };
    },
    forget(): void {
      known = null;
    },
  };
}

export function directoryArtifacts(root: string, limits: ArtifactLimits): ArtifactStore {
  const account = openAccount(root, limits);
  const pathFor = (rolloutId: string, { attempt, claim }: AttemptName): string =>
    join(root, parseRolloutId(rolloutId).runId, `${rolloutId}.${attempt}.${claim}${SUFFIX}`);
  return {
    kind: 'directory',
    usage: account.usage,
    async put(rolloutId, named, blob, signal) {
      await account.requireRoom(blob.byteLength);
      const path = pathFor(rolloutId, named);
      await write(path, blob, signal);
      account.count(blob.byteLength, 1);
      return pathToFileURL(path).href;
    },
    async append(rolloutId, named, bytes, offset, signal) {
      await account.requireRoom(bytes.byteLength);
      const path = pathFor(rolloutId, named);
      if (offset === 0) await write(path, bytes, signal);
      else if (!(await appendTo(path, bytes, offset))) return false;
      account.count(bytes.byteLength, offset === 0 ? 1 : 0);
      return true;
    },
    locate: (rolloutId, named) => pathToFileURL(pathFor(rolloutId, named)).href,
    get: readFileBytes,
    async remove(locator) {
      const path = resolve(pathOf(locator));
      if (!path.startsWith(resolve(root) + sep)) {
        throw new SwefarmError('bad_artifact_locator', `"${locator}" is not in ${root}`);
      }
      await rm(path, { force: true });
      account.forget();
    },
    async *runParts(runId) {
      const folder = join(root, runId);
      const names = await namesIn(folder);
      for (let at = 0; at < names.length; at += PART)
        yield names.slice(at, at + PART).flatMap((name) => readName(folder, name) ?? []);
    },
    async removeRun(runId) {
      const folder = join(root, runId);
      for (const name of await namesIn(folder))
        if (name.endsWith(SUFFIX)) await rm(join(folder, name), { force: true });
      await removeEmpty(folder);
      account.forget();
    },
  };
}

/** Reads the file of a locator, whatever the configured directory is. */
export async function readFileBytes(locator: string): Promise<Buffer> {
  try {
    return await readFile(pathOf(locator));
  } catch (error) {
    if (error instanceof SwefarmError) throw error;
    const code = isCode(error, 'ENOENT') ? 'artifact_missing' : 'artifact_store';
    throw new SwefarmError(code, `no artifact at ${locator}: ${errorMessage(error)}`, { cause: error });
  }
}

function pathOf(locator: string): string {
  if (locator.startsWith('file:///') && locator.endsWith(SUFFIX)) return fileURLToPath(locator);
  throw new SwefarmError(
    'bad_artifact_locator',
    `"${locator}" is not the locator of an artifact in a directory`,
  );
}

async function write(path: string, blob: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
  try {
    await mkdir(join(path, '..'), { recursive: true });
    const write = async (part: string): Promise<void> => {
      // Only the owner may write the file, whatever the umask.
      await using file = await open(part, 'wx', 0o644);
      await file.writeFile(blob, signal ? { signal } : {});
      await file.datasync();
    };
    await replaceWith(path, write);
  } catch (error) {
    signal?.throwIfAborted();
    throw writeError(error, path);
  }
}

/** Appends to a file that has `offset` bytes; returns false if its size differs, or if there is no file. */
async function appendTo(path: string, bytes: Uint8Array, offset: number): Promise<boolean> {
  try {
    await using file = await open(path, 'r+');
    if ((await file.stat()).size !== offset) return false;
    await file.write(bytes, 0, bytes.byteLength, offset);
    await file.datasync();
    return true;
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false;
    throw writeError(error, path);
  }
}

/** Returns the retryable error of a failed write. */
export function writeError(error: unknown, path: string): SwefarmError {
  const full = isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT');
  return new SwefarmError(
    full ? 'artifact_disk_full' : 'artifact_store',
    full ? `the disk of ${path} is full` : `cannot write ${path}: ${errorMessage(error)}`,
    { cause: error, retryable: true },
  );
}

/** Counts the artifacts in the directory. Removes artifacts written before `expiredBefore` (ms since the epoch), and emptied folders. */
async function walk(root: string, expiredBefore: number): Promise<{ bytes: number; files: number }> {
  let bytes = 0;
  let files = 0;
  for (const run of await namesIn(root)) {
    const folder = join(root, run);
    const names = (await namesIn(folder)).filter((name) => name.endsWith(SUFFIX));
    let remaining = 0;
    for (const name of names) {
      const info = await stat(join(folder, name)).catch(ifGone);
      if (!info) continue;
      if (info.mtimeMs < expiredBefore) await rm(join(folder, name), { force: true });
      else {
        bytes += info.size;
        remaining += 1;
      }
    }
    files += remaining;
    if (names.length > 0 && remaining === 0) await removeEmpty(folder);
  }
  return { bytes, files };
}

function readName(folder: string, name: string): StoredArtifact | null {
  const match = NAME.exec(name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : '');
  if (!match) return null;
  const [, rollout_id = '', attempt, claim = ''] = match;
  return { rollout_id, attempt: Number(attempt), claim, locator: pathToFileURL(join(folder, name)).href };
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR')) return [];
    throw error;
  }
}

/** Removes a folder unless it contains files. Another process may remove the folder, or write to it, at the same time. */
async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: unknown) => {
    if (!isCode(error, 'ENOTEMPTY')) ifGone(error);
  });
}

function ifGone(error: unknown): null {
  if (isCode(error, 'ENOENT')) return null;
  throw error;
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
