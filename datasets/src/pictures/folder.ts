/**
 * Reads a folder with the pictures of a dataset's issues. `pictures.jsonl` in the folder lists address and file of each picture. The folder
 * is made by `swefarm dataset pictures`, or by hand if there is no network.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { isAbsolute, join, sep } from 'node:path';
import {
  errorMessage,
  MOST,
  PICTURE_TYPES,
  type Picture,
  type PictureFile,
  pictureTypeOf,
  UsageError,
} from '@swefarm/shared';
import { z } from 'zod';
import type { PictureSource } from '../families/family.ts';

export const PICTURE_LIST = 'pictures.jsonl';

export const PictureLine = z.object({
  address: z.string().min(1),
  /** Path relative to the folder. */
  file: z.string().min(1),
  /** SHA-256 of the file; absent in lists that users wrote by hand. */
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
export type PictureLine = z.infer<typeof PictureLine>;

/** Reads the list; `find` reads the files. @throws UsageError with file, line and field if the list cannot be read */
export function openPictureFolder(folder: string): PictureSource {
  const lines = new Map(readPictureList(folder).map((line) => [line.address, line]));
  return {
    find(address) {
      const line = lines.get(address);
      if (!line) return { address, problem: `is not named in ${join(folder, PICTURE_LIST)}` };
      return readPicture(folder, line);
    },
  };
}

export function readPictureList(folder: string): PictureLine[] {
  const path = join(folder, PICTURE_LIST);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(
      `--picture-files: ${path} cannot be read (${errorMessage(error)}); swefarm dataset pictures makes it, or write a line {"address": …, "file": …} for each picture`,
      { cause: error },
    );
  }
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const where = `${path}: line ${index + 1}`;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      throw new UsageError(`${where}: is not JSON; expected {"address": …, "file": …}`, { cause: error });
    }
    const read = PictureLine.safeParse(value);
    if (read.success) return [read.data];
    const [issue] = read.error.issues;
    throw new UsageError(`${where}: ${issue?.path.join('.')}: ${issue?.message}`);
  });
}

function readPicture(folder: string, { address, file, sha256 }: PictureLine): Picture {
  const read = readBytes(folder, file);
  if ('problem' in read) return { address, problem: `${file} ${read.problem}` };
  const found = pictureFileOf(read.bytes);
  if ('problem' in found) return { address, problem: `${file} ${found.problem}` };
  if (sha256 !== undefined && sha256 !== found.sha256)
    return { address, problem: `${file} has another checksum than ${PICTURE_LIST} lists; fetch it again` };
  return { address, file: { ...found, data: read.bytes.toString('base64') } };
}

/** Returns type and hash of a picture, or the reason why it cannot be sent to a model. */
export function pictureFileOf(bytes: Buffer): Omit<PictureFile, 'data'> | { problem: string } {
  if (bytes.length === 0) return { problem: 'is empty' };
  if (bytes.length > MOST.pictureBytes)
    return { problem: `has ${bytes.length} bytes; a picture has at most ${MOST.pictureBytes}` };
  const media_type = pictureTypeOf(bytes);
  if (media_type === null) return { problem: `is ${formOf(bytes)}; expected ${PICTURE_TYPES.join(', ')}` };
  return { media_type, sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length };
}

function formOf(bytes: Buffer): string {
  const head = bytes.subarray(0, 1024).toString('latin1').trimStart().toLowerCase();
  if (head.startsWith('<') && head.includes('<svg')) return 'an SVG';
  return head.startsWith('<') ? 'a page of HTML or XML' : 'no picture of a known type';
}

/** Reads a regular file inside the folder. Refuses paths that lead outside through links or `..`. */
function readBytes(folder: string, file: string): { bytes: Buffer } | { problem: string } {
  if (isAbsolute(file) || file.includes('\0')) return { problem: 'is no path within the folder' };
  let handle: number | null = null;
  try {
    const root = realpathSync(folder);
    const path = realpathSync(join(root, file));
    if (!path.startsWith(root + sep)) return { problem: 'lies outside of the folder' };
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    handle = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const facts = fstatSync(handle);
    if (!facts.isFile()) return { problem: 'is no regular file' };
    if (facts.size > MOST.pictureBytes)
      return { problem: `has ${facts.size} bytes; a picture has at most ${MOST.pictureBytes}` };
    return { bytes: readFileSync(handle) };
  } catch (error) {
    return { problem: `cannot be read (${errorMessage(error)})` };
  } finally {
    if (handle !== null) closeSync(handle);
  }
}
