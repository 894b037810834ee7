/**
 * Encodes the test log of an artifact. JSON writes a control character as six characters, so a log with many of these could exceed the
 * longest string. Such a log is stored as base64.
 */
import { setImmediate } from 'node:timers/promises';

/** Minimum length of a log that may be stored as base64. */
const SHORT = 1024 ** 2;
/** Factor by which base64 lengthens a text; JSON lengthens ordinary text less. */
const MOST_GROWTH = 4 / 3;
/** Number of bytes that are counted before other events are handled. */
const SLICE = 512 * 1024;

type PackedText = { dtype: 'utf8'; base64: string };

/** Returns the log unchanged, or as base64 if that is shorter than JSON. */
export async function compactLog(
  log: string | Uint8Array | null,
): Promise<string | Uint8Array | PackedText | null> {
  if (log === null || log.length < SHORT) return log;
  const bytes =
    typeof log === 'string' ? Buffer.from(log) : Buffer.from(log.buffer, log.byteOffset, log.length);
  if ((await lengthInJson(bytes)) <= bytes.length * MOST_GROWTH) return log;
  return { dtype: 'utf8', base64: bytes.toString('base64') };
}

/** Returns the text of a stored log. */
export const logText = (stored: unknown): string | null =>
  isPacked(stored)
    ? Buffer.from(stored.base64, 'base64').toString('utf8')
    : ((stored ?? null) as string | null);

const isPacked = (stored: unknown): stored is PackedText =>
  typeof stored === 'object' && stored !== null && (stored as { dtype?: unknown }).dtype === 'utf8';

/** Length of each byte in JSON; every byte of a non-ASCII character counts as one. */
const COSTS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 ? JSON.stringify(String.fromCharCode(byte)).length - 2 : 1,
);

async function lengthInJson(bytes: Uint8Array): Promise<number> {
  let length = 0;
  for (let at = 0; at < bytes.length; at += SLICE) {
    for (const byte of bytes.subarray(at, at + SLICE)) length += COSTS[byte] ?? 1;
    await setImmediate();
  }
  return length;
}
