/** Reads a file of a container from a tar archive, which hostile code may have written. */
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { SwefarmError } from '@swefarm/shared';
import tar from 'tar-stream';

/**
 * Returns the content of the archive's first entry; null if the entry is no regular file. Writes nothing to the disk.
 * @throws SwefarmError `file_too_large` by the size in the header, before the content is read
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
    return await buffer(entry);
  }
  return null;
}
