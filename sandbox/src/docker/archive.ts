/** Reads files out of a container: the archive is made from what hostile code left there. */
import type { Duplex } from 'node:stream';
import { SwefarmError } from '@swefarm/shared';
import tar from 'tar-stream';

/**
 * The archive's one entry when it is a regular file; nothing of it is ever written to a path. Null for anything else. Throws
 * SwefarmError `file_too_large` by the size in the header, before it stores a byte.
 */
export async function readSingleFile(
  archive: NodeJS.ReadableStream,
  path: string,
  maxBytes: number,
): Promise<Buffer | null> {
  const extract = tar.extract();
  archive.once('error', (error: Error) => extract.destroy(error));
  archive.pipe(extract);
  for await (const entry of extract) {
    const { type, size = 0 } = entry.header;
    if (type !== 'file' || size > maxBytes) {
      extract.destroy();
      (archive as unknown as Duplex).destroy();
      if (type !== 'file') return null;
      throw new SwefarmError('file_too_large', `${path} has ${size} bytes, more than ${maxBytes}`);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  }
  return null;
}
