/** Downloads one file: continues after a cut and after a kill, and takes its name only when size and checksum are right. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorMessage, SwefarmError, sleep, UnusableError } from '@swefarm/shared';
import { ask, type HubAddress, type HubFile } from './hub.ts';

export type Download = {
  hub: HubAddress;
  url: string;
  file: HubFile;
  /** The commit whose file it must be. */
  commit: string;
  /** Where it goes. */
  target: string;
  signal: AbortSignal;
  onNote: (text: string) => void;
};

/** Cuts in a row without a new byte that end a download. */
const MOST_CUTS = 5;
const PAUSE_MS = 500;

/** Returns the SHA-256 of the file. Throws UnusableError for a wrong checksum, a change on the hub, or a hub that keeps breaking off. */
export async function download(task: Download): Promise<string> {
  const { file, target, signal } = task;
  // The checksum in its name: what was begun of another version is never continued.
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
          `${task.url}: breaks off again and again (${errorMessage(error)}); what is there stays, the same command continues`,
          { cause: error },
        );
      }
      task.onNote(`${file.path}: cut off at ${await sizeOf(part)} of ${file.size} bytes; continuing`);
      await sleep(PAUSE_MS * cuts, signal);
    }
  }
  const found = await hashFile(part);
  const right = file.checksum.kind === 'sha256' ? found.sha256 : found.git;
  if (found.size !== file.size || right !== file.checksum.value) {
    await rm(part, { force: true });
    throw new UnusableError(
      'hub_checksum',
      `${file.path}: has ${found.size} bytes with the ${file.checksum.kind} checksum ${right}, expected ${file.size} bytes with ${file.checksum.value}; what came was removed, fetch it again`,
    );
  }
  await rename(part, target);
  return found.sha256;
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
  const told = answer.headers.get('x-repo-commit');
  if (told !== null && told !== commit) {
    await answer.body?.cancel();
    throw new UnusableError(
      'hub_changed',
      `${file.path}: the hub answers with commit ${told} instead of ${commit}; fetch again`,
    );
  }
  // A server that ignores the range sends all of it; one that says 416 has less than is here.
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

const isLocal = (error: unknown): boolean =>
  /^(ENOSPC|EACCES|EPERM|EROFS|EDQUOT|ENOTDIR|EISDIR)$/.test(String((error as NodeJS.ErrnoException).code));

/** Zero when there is none. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

export type FileHashes = { size: number; sha256: string; git: string };

/** Throws the system's error. */
export async function hashFile(path: string): Promise<FileHashes> {
  const size = await sizeOf(path);
  const sha256: Hash = createHash('sha256');
  const git: Hash = createHash('sha1').update(`blob ${size}\0`);
  if (size > 0) {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
      sha256.update(chunk as Buffer);
      git.update(chunk as Buffer);
    }
  }
  return { size, sha256: sha256.digest('hex'), git: git.digest('hex') };
}
