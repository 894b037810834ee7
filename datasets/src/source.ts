/**
 * Reads a dataset file as a stream of raw rows. The content decides the format, because some .json files contain JSONL and some .jsonl
 * files are gzipped.
 */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { errorMessage, UsageError } from '@swefarm/shared';
import { COLUMNS } from './families/registry.ts';
import { isFolder, readTaskFolders } from './harbor/folder.ts';
import { parseJsonText } from './json.ts';
import { parseJsonLines } from './jsonl.ts';
import type { RawRow } from './problem.ts';

/** Yields rows in file order, or the Harbor tasks of a folder. @throws UsageError if the file is missing, empty, truncated or of an unknown format */
export async function* readRows(path: string, signal?: AbortSignal): AsyncGenerator<RawRow> {
  if (await isFolder(path)) {
    yield* readTaskFolders(path);
    return;
  }
  const { form, open: plain } = await openSource(path, signal);
  if (form === 'parquet') {
    const { readParquet } = await import('./parquet.ts');
    yield* readParquet(path);
    return;
  }
  try {
    if (form === 'jsonl') yield* parseJsonLines(plain());
    else yield* parseJsonText(path, plain());
  } catch (error) {
    throw readError(path, error);
  }
}

type DatasetSource = {
  form: 'json' | 'jsonl' | 'parquet';
  /** Opens the decompressed text, or the bytes of a parquet file. May be called several times. */
  open: () => Readable;
};

/** Detects the format of a file by its content. Throws the errors of {@link readRows}. */
export async function openSource(path: string, signal?: AbortSignal): Promise<DatasetSource> {
  const head = await readHead(path);
  if (head.subarray(0, 4).toString('latin1') === 'PAR1') {
    return { form: 'parquet', open: () => openPlain(path, false, signal) };
  }
  const gzipped = head[0] === 0x1f && head[1] === 0x8b;
  const plain = () => openPlain(path, gzipped, signal);
  const first = gzipped ? await firstBytes(plain()) : head;
  return { form: isJsonLines(first) ? 'jsonl' : 'json', open: plain };
}

const HEAD_BYTES = 64 * 1024;

async function readHead(path: string): Promise<Buffer> {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    if (bytesRead === 0) throw new UsageError(`${path}: the file is empty; fetch or write it again`);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw readError(path, error);
  }
}

async function firstBytes(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size >= HEAD_BYTES) break;
    }
  } catch (error) {
    // A later pass over the whole file yields the complete rows and reports the truncation.
    if (size === 0) throw error;
  }
  return Buffer.concat(chunks);
}

function openPlain(path: string, gzipped: boolean, signal?: AbortSignal): Readable {
  const file = createReadStream(path, { highWaterMark: 1024 * 1024, ...(signal ? { signal } : {}) });
  if (!gzipped) return file;
  const plain = createGunzip();
  // pipe() forwards no errors, and pipeline() fails for readers that stop early.
  file.on('error', (error) => plain.destroy(error));
  plain.on('close', () => file.destroy());
  return file.pipe(plain);
}

/** Whether the file is JSONL, whose first line is a complete JSON object. */
function isJsonLines(head: Buffer): boolean {
  const text = head
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .trimStart();
  if (!text.startsWith('{')) return !text.startsWith('[');
  const firstKey = /^\{\s*"([^"\\]+)"\s*:\s*\{/.exec(text)?.[1];
  if (firstKey !== undefined && !COLUMNS.includes(firstKey)) return false;
  const end = text.indexOf('\n');
  // A first line that is longer than `head` is usually a row of JSONL.
  if (end < 0) return true;
  const line = text.slice(0, end).trim();
  return line !== '{' && !line.endsWith(',');
}

/** Returns the command that fetches a dataset if the path looks like the name of a dataset; otherwise null. */
function hubRemedy(path: string): string | null {
  if (!/^[\w-][\w.-]*\/[\w-][\w.-]*(@[\w.-]+)?$/.test(path) || /\.(jsonl?|parquet|gz|csv|tsv)$/.test(path))
    return null;
  const [name = ''] = path.split('@');
  return `if it is the name of a dataset on a hub, fetch it first with "npx swefarm dataset fetch ${path}"; then give a file in ${name.replace('/', '__')}`;
}

/** Returns the error for an unreadable file, with a remedy in the message. */
export function readError(path: string, error: unknown): unknown {
  if (error instanceof UsageError) return error;
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return new UsageError(`${path}: no such file; ${hubRemedy(path) ?? 'check the path of --dataset'}`, {
        cause: error,
      });
    case 'EACCES':
    case 'EPERM':
      return new UsageError(`${path}: may not be read by this user; check its permissions`, { cause: error });
    case 'Z_BUF_ERROR':
    case 'Z_DATA_ERROR':
      return new UsageError(`${path}: the gzip data is cut off or damaged; fetch the file again`, {
        cause: error,
      });
    case 'ABORT_ERR':
      return error;
    default:
      return new UsageError(`${path}: cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}
