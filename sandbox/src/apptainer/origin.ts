/**
 * Records the origin of a .sif file in `PATH.origin.json` beside it. `swefarm images convert` writes the record before the image
 * appears. Other .sif files have no record.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { errorMessage, RolloutFailure, replaceFile, withoutMiddle } from '@swefarm/shared';
import { z } from 'zod';

const Origin = z.object({
  image: z.string(),
  sha256: z.string(),
  bytes: z.number(),
  converted_at: z.string(),
});
export type Origin = z.infer<typeof Origin>;

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

export async function sha256Of(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, signal ? { signal } : {});
  return hash.digest('hex');
}
