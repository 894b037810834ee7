/**
 * The form of a test log in an artifact. JSON escapes a control character with six letters, so a log full of them could exceed the
 * longest string. Such a log is stored as base64.
 */
import { setImmediate } from 'node:timers/promises';

/** Shorter logs stay as they are. */
const SHORT = 1024 ** 2;
/** Growth by base64; JSON of ordinary text grows less. */
const MOST_GROWTH = 4 / 3;
/** Bytes counted between two turns of the event loop. */
const SLICE = 512 * 1024;

type PackedText = { dtype: 'utf8'; base64: string };

/** Returns the log as it is, or packed. */
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

/** Length in JSON of each byte; bytes of longer characters count one each. */
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
