/** Downloads one file and resumes after interruptions. The file gets its final name after size and checksum are verified. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorMessage, SwefarmError, sleep, UnusableError } from '@swefarm/shared';
import { ask, type HubAddress, type HubFile } from './hub.ts';

export type Download = {
  hub: HubAddress;
  url: string;
  file: HubFile;
  commit: string;
  target: string;
  signal: AbortSignal;
  onNote: (text: string) => void;
};

/** Number of consecutive interruptions without a new byte that ends a download. */
const MOST_CUTS = 5;
const PAUSE_MS = 500;

/** Returns the SHA-256 of the file. @throws UnusableError for a wrong checksum, a change on the hub, or repeated interruptions */
export async function download(task: Download): Promise<string> {
  const { file, target, signal } = task;
  // The name contains the checksum, so that a partial file of another version is not resumed.
  const part = join(dirname(target), `.${basename(target)}.${file.checksum.value.slice(0, 16)}.part`);
  await mkdir(dirname(target), { recursive: true });
  for (let cuts = 0; ; ) {
    const before = await sizeOf(part);
    if (before >= file.size && before > 0) break;
    try {
      await fetchRest(task, part, before);
      if (file.size === 0 || (await sizeOf(part)) >= file.size) break;
      throw new Error('the answer ended early');
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SwefarmError || isLocal(error)) throw error;
      cuts = (await sizeOf(part)) > before ? 1 : cuts + 1;
      if (cuts >= MOST_CUTS) {
        throw new UnusableError(
          'hub_breaks_off',
          `${task.url}: the download was interrupted repeatedly (${errorMessage(error)}); run the same command again to resume it`,
          { cause: error },
        );
      }
      task.onNote(`${file.path}: cut off at ${await sizeOf(part)} of ${file.size} bytes; continuing`);
      await sleep(PAUSE_MS * cuts, signal);
    }
  }
  const found = await checkFile(part, file);
  if (found.right) {
    await rename(part, target);
    return found.sha256;
  }
  await rm(part, { force: true });
  throw new UnusableError(
    'hub_checksum',
    `${file.path}: has ${found.size} bytes with the ${file.checksum.kind} checksum ${found.checksum}, expected ${file.size} bytes with ${file.checksum.value}; the download was removed, fetch it again`,
  );
}

async function fetchRest(
  { hub, url, commit, signal, file }: Download,
  part: string,
  from: number,
): Promise<void> {
  const answer = await ask(hub, url, {
    signal,
    headers: { 'accept-encoding': 'identity', ...(from > 0 ? { range: `bytes=${from}-` } : {}) },
  });
  const served = answer.headers.get('x-repo-commit');
  if (served !== null && served !== commit) {
    await answer.body?.cancel();
    throw new UnusableError(
      'hub_changed',
      `${file.path}: the hub answers with commit ${served} instead of ${commit}; fetch again`,
    );
  }
  // A server that ignores the range sends the whole file. Status 416 means that the file on the server is shorter than the partial file.
  const start = Number(/^bytes (\d+)-/.exec(answer.headers.get('content-range') ?? '')?.[1] ?? -1);
  const continues = answer.status === 206 && start === from;
  if (!continues && answer.status !== 200) {
    await answer.body?.cancel();
    await rm(part, { force: true });
    throw new Error(`the hub does not continue at byte ${from}`);
  }
  await using handle = await open(part, continues ? 'a' : 'w');
  let size = continues ? from : 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > file.size)
      throw new UnusableError(
        'hub_size',
        `${file.path}: more than the ${file.size} bytes that the hub announced`,
      );
    await handle.writeFile(chunk);
  }
  await handle.datasync();
}

/** Whether the error comes from the local file system, so that a retry is useless. */
const isLocal = (error: unknown): boolean =>
  /^(ENOSPC|EACCES|EPERM|EROFS|EDQUOT|ENOTDIR|EISDIR)$/.test(String((error as NodeJS.ErrnoException).code));

/** Returns the size of a file in bytes; 0 if the file does not exist. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

type CheckedFile = { size: number; sha256: string; checksum: string; right: boolean };

/** Compares a file on disk with the hub's size and checksum. Throws file system errors. */
export async function checkFile(path: string, file: HubFile): Promise<CheckedFile> {
  const size = await sizeOf(path);
  const sha256 = createHash('sha256');
  const git = createHash('sha1').update(`blob ${size}\0`);
  if (size > 0) {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
      sha256.update(chunk as Buffer);
      git.update(chunk as Buffer);
    }
  }
  const found = { sha256: sha256.digest('hex'), git: git.digest('hex') };
  const checksum = found[file.checksum.kind];
  return {
    size,
    sha256: found.sha256,
    checksum,
    right: size === file.size && checksum === file.checksum.value,
  };
}
