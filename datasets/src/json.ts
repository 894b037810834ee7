/** Reads one JSON text: a list of rows, an object with instance ids as keys, or a single row. */
import type { Readable } from 'node:stream';
import { UsageError } from '@swefarm/shared';
import { ID_COLUMNS } from './families/registry.ts';
import { asRow, parseJsonLines } from './jsonl.ts';
import type { RawRow } from './problem.ts';

/** Maximum size of a JSON file, because V8 strings end at 512 MiB. JSONL and parquet files have no such limit. */
const MOST_BYTES = 500 * 1024 ** 2;

/** Yields the rows of JSON text. Reads invalid JSON that begins with `{` as JSONL. @throws UsageError for other invalid or too long text */
export async function* parseJsonText(path: string, stream: Readable): AsyncGenerator<RawRow> {
  const bytes = await readAll(path, stream);
  const text = textOf(bytes);
  let value: unknown;
  try {
    value = parseWhole(path, text);
  } catch (error) {
    if (!text.trimStart().startsWith('{')) throw error;
    yield* parseJsonLines([bytes]);
    return;
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield asRow(`item ${index + 1}`, item);
    return;
  }
  const object = asRow('item 1', value);
  if ('problem' in object || ID_COLUMNS.some((name) => name in object.value)) {
    yield object;
    return;
  }
  for (const [key, item] of Object.entries(object.value)) {
    const row = asRow(`entry ${JSON.stringify(key)}`, item);
    yield 'value' in row ? { where: row.where, value: { instance_id: key, ...row.value } } : row;
  }
}

/** Decodes UTF-8 and removes the byte order mark. */
export const textOf = (bytes: Buffer): string => bytes.toString('utf8').replace(/^\uFEFF/, '');

export function parseWhole(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(
      `${path}: is not valid JSON (${(error as Error).message}); the file is cut off or damaged, fetch it again`,
      { cause: error },
    );
  }
}

export async function readAll(path: string, stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += (chunk as Buffer).length;
    if (size > MOST_BYTES) {
      throw new UsageError(
        `${path}: JSON over 500 MB cannot be read at once; convert it to JSONL or parquet`,
      );
    }
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
