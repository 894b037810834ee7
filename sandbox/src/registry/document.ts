/** Reads bodies of answers that fit into memory. */
import type { Readable } from 'node:stream';

/** Most bytes of an answer that is no success. */
const MOST_ERROR_BYTES = 64 * 1024;

/** Throws an Error that begins with `what` if the body has more than `most` bytes. */
export async function readDocument(body: Readable, most: number, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > most) throw new Error(`${what} has more than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns the body of an answer that is no success; an empty text if the body is too large or incomplete. */
export const readErrorText = (body: Readable): Promise<string> =>
  readDocument(body, MOST_ERROR_BYTES, 'the answer').then(String, () => '');
