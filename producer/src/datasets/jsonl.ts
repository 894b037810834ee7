/** Reads JSON Lines row by row: files of many gigabytes take constant memory. */

import { describeValue } from './fields/problem.ts';
import type { RawRow } from './problem.ts';

const NEWLINE = 0x0a;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Splits at line feeds only: readline would also split at U+2028, which is legal inside JSON strings. */
export async function* parseJsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<RawRow> {
  let pending: Uint8Array[] = [];
  let number = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      number += 1;
      const row = parseLine(Buffer.concat(pending), number, false);
      if (row) yield row;
      pending = [];
      start = end + 1;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  if (pending.length === 0) return;
  const last = parseLine(Buffer.concat(pending), number + 1, true);
  if (last) yield last;
}

function parseLine(bytes: Uint8Array, number: number, unterminated: boolean): RawRow | null {
  const where = `line ${number}`;
  let text: string;
  try {
    text = decoder.decode(bytes).trim();
  } catch {
    // The decoder's own message ("The encoded data was not valid") adds nothing.
    return bad(where, 'UTF-8 text', 'other bytes', 'convert the file to UTF-8');
  }
  if (text === '') return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return unterminated
      ? bad(where, 'a whole JSON object', 'a line that is cut off', 'the file is truncated: fetch it again')
      : bad(where, 'a JSON object', `text that is not JSON (${(error as Error).message})`, 'mend this line');
  }
  return { ...asRow(where, value), text };
}

/** A row must be an object; shared by all text formats. */
export function asRow(where: string, value: unknown): RawRow {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    return { where, value: value as Record<string, unknown> };
  }
  return bad(where, 'a JSON object', describeValue(value), 'write one object per row');
}

function bad(where: string, expected: string, found: string, remedy: string): RawRow {
  return { where, problem: { where, field: null, expected, found, remedy } };
}
