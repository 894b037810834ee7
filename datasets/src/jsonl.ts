/** Reads JSON Lines row by row in constant memory. */
import { MOST } from '@swefarm/shared';
import { isRow } from './fields/fields.ts';
import { describeValue } from './fields/problem.ts';
import type { RawRow } from './problem.ts';

/** A row, and the position and length of its line in bytes. */
type LineRow = RawRow & { bytes: { at: number; length: number } };

const NEWLINE = 0x0a;
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Yields a row for each line. Splits at line feeds only, because readline also splits at U+2028, which JSON strings may contain. A line
 * longer than `mostBytes` is not stored: it becomes a problem with its line number.
 */
export async function* parseJsonLines(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mostBytes: number = MOST.textBytes,
): AsyncGenerator<LineRow> {
  let pending: Uint8Array[] = [];
  let size = 0;
  let number = 0;
  let at = 0;
  const add = (part: Uint8Array): void => {
    size += part.length;
    if (size > mostBytes) pending = [];
    else if (part.length > 0) pending.push(part);
  };
  const take = (unterminated: boolean): LineRow | null => {
    number += 1;
    const line = Buffer.concat(pending);
    const bytes = { at, length: size };
    at += size + 1;
    pending = [];
    size = 0;
    const row =
      bytes.length > mostBytes
        ? bad(
            `line ${number}`,
            `a row of at most ${mostBytes} bytes`,
            `one of ${bytes.length} bytes`,
            'remove the columns that this farm does not read, or leave out the row',
          )
        : parseLine(line, number, unterminated);
    return row && { ...row, bytes };
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      const row = take(false);
      if (row) yield row;
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (size === 0) return;
  const last = take(true);
  if (last) yield last;
}

function parseLine(bytes: Uint8Array, number: number, unterminated: boolean): RawRow | null {
  const where = `line ${number}`;
  let text: string;
  try {
    text = decoder.decode(bytes).trim();
  } catch {
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

/** Returns the row, or a problem if the value is not an object. */
export const asRow = (where: string, value: unknown): RawRow =>
  isRow(value)
    ? { where, value }
    : bad(where, 'a JSON object', describeValue(value), 'write one object per row');

function bad(where: string, expected: string, found: string, remedy: string): RawRow {
  return { where, problem: { where, field: null, expected, found, remedy } };
}
