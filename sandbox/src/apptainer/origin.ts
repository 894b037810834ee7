/**
 * The record `PATH.origin.json` beside a .sif file names its origin. `swefarm images convert` writes the record before the image appears.
 * Other .sif files have no record.
 */
import { readFile } from 'node:fs/promises';
import { errorMessage, RolloutFailure, replaceFile, withoutMiddle } from '@swefarm/shared';
import { z } from 'zod';
import { fullName, withTag } from '../images/names.ts';

const Origin = z.object({
  image: z.string(),
  sha256: z.string(),
  bytes: z.number(),
  converted_at: z.string(),
});
type Origin = z.infer<typeof Origin>;

const fileOf = (path: string): string => `${path}.origin.json`;

/** Returns null if there is no record. Throws RolloutFailure image_pull for an invalid record. */
export async function readOrigin(path: string): Promise<Origin | null> {
  const text = await readFile(fileOf(path), 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return Origin.parse(JSON.parse(text));
  } catch (error) {
    throw new RolloutFailure('image_pull', withoutMiddle(`${fileOf(path)}: ${errorMessage(error)}`, 400));
  }
}

export const writeOrigin = (path: string, origin: Origin): Promise<void> =>
  replaceFile(fileOf(path), JSON.stringify(origin));

/** Returns the image of which a file was made, if the record names another one than `image`; else null. */
export async function otherOrigin(path: string, image: string): Promise<string | null> {
  const origin = await readOrigin(path);
  const isSame = origin === null || fullName(withTag(origin.image)) === fullName(withTag(image));
  return isSame ? null : origin.image;
}
