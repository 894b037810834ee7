/** Downloads the pictures of a dataset's issues to a folder, so that workers need no network to read them. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  errorMessage,
  exponentialBackoff,
  type Instance,
  MOST,
  replaceFile,
  retry,
  UsageError,
} from '@swefarm/shared';
import {
  openPictureFolder,
  PICTURE_LIST,
  type PictureLine,
  pictureFileOf,
  readPictureList,
} from './folder.ts';

export type PictureTask = {
  instances: readonly Instance[];
  folder: string;
  signal: AbortSignal;
  onNote: (text: string) => void;
};

export type FetchedPictures = {
  folder: string;
  fetched: number;
  present: number;
  missing: { address: string; problem: string }[];
};

const TIMEOUT_MS = 60_000;
const TRIES = 4;
const ENDINGS = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
} as const;

/** Fetches missing pictures. @throws UsageError if the list of the folder cannot be read; file system errors */
export async function fetchPictures({
  instances,
  folder,
  signal,
  onNote,
}: PictureTask): Promise<FetchedPictures> {
  await mkdir(folder, { recursive: true });
  const lines = new Map((await listOf(folder)).map((line) => [line.address, line]));
  const known = lines.size > 0 ? openPictureFolder(folder) : null;
  const done: FetchedPictures = { folder, fetched: 0, present: 0, missing: [] };
  const addresses = new Set(instances.flatMap(({ pictures = [] }) => pictures.map(({ address }) => address)));
  for (const address of addresses) {
    signal.throwIfAborted();
    if (known?.find(address).file) {
      done.present++;
      continue;
    }
    try {
      const bytes = await bytesAt(address, signal);
      const found = pictureFileOf(bytes);
      if ('problem' in found) throw new UsageError(found.problem);
      const file = `${found.sha256}.${ENDINGS[found.media_type]}`;
      await replaceFile(join(folder, file), bytes, { sync: true });
      lines.set(address, { address, file, sha256: found.sha256 });
      // The list is written after each picture, so that it is valid after an interruption.
      await replaceFile(join(folder, PICTURE_LIST), jsonLines(lines.values()), { sync: true });
      done.fetched++;
      onNote(`${address}: ${found.bytes} bytes`);
    } catch (error) {
      signal.throwIfAborted();
      if (isLocal(error)) throw error;
      const problem = errorMessage(error);
      done.missing.push({ address, problem });
      onNote(`${address}: no picture: ${problem}`);
    }
  }
  return done;
}

async function listOf(folder: string): Promise<PictureLine[]> {
  try {
    return readPictureList(folder);
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return [];
    throw error;
  }
}

const jsonLines = (lines: Iterable<PictureLine>): string =>
  Array.from(lines, (line) => `${JSON.stringify(line)}\n`).join('');

/** Whether the error comes from the local file system. */
const isLocal = (error: unknown): boolean =>
  /^(ENOSPC|EACCES|EPERM|EROFS|EDQUOT|ENOTDIR|EISDIR)$/.test(String((error as NodeJS.ErrnoException).code));

/** Thrown for an HTTP status after which a retry may succeed. */
class PassingError extends Error {
  override readonly name = 'PassingError';
}

async function bytesAt(address: string, signal: AbortSignal): Promise<Buffer> {
  if (!/^https?:\/\//i.test(address)) throw new UsageError('is no http address');
  return await retry(() => askOnce(address, signal), {
    pauseMs: exponentialBackoff(1000, 8000),
    tries: TRIES,
    signal,
    isPassing: (error) => error instanceof PassingError,
  });
}

async function askOnce(address: string, signal: AbortSignal): Promise<Buffer> {
  const answer = await fetch(address, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  }).catch((error: unknown) => {
    const { cause } = error as { cause?: unknown };
    throw new UsageError(`cannot be reached (${errorMessage(cause ?? error)})`, { cause: error });
  });
  if (!answer.ok) {
    await answer.body?.cancel();
    const passing = answer.status === 429 || answer.status === 408 || answer.status >= 500;
    const message = `the server answers ${answer.status}`;
    throw passing ? new PassingError(message) : new UsageError(message);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > MOST.pictureBytes)
      throw new UsageError(`has more than the ${MOST.pictureBytes} bytes that a picture may have`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
