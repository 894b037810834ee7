/** Reads one JSON text: a list of rows, an object keyed by instance id, or a single row. */
import type { Readable } from 'node:stream';
import { UsageError } from '@swefarm/shared';
import { ID_COLUMNS } from './families/registry.ts';
import { asRow, parseJsonLines } from './jsonl.ts';
import type { RawRow } from './problem.ts';

/** V8 cannot hold a longer string; JSONL and parquet have no such limit. */
const MOST_BYTES = 500 * 1024 ** 2;

/** @throws UsageError when the text is not JSON or is too long to be read at once */
export async function* parseJsonText(path: string, stream: Readable): AsyncGenerator<RawRow> {
  const bytes = await readAll(path, stream);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) {
      yield* parseJsonLines(one(bytes));
      return;
    }
    throw new UsageError(
      `${path}: is not valid JSON (${(error as Error).message}); the file is cut off or damaged, fetch it again`,
      { cause: error },
    );
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

async function readAll(path: string, stream: Readable): Promise<Buffer> {
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

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
