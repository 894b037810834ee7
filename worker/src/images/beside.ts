/** The configuration of an image that cannot hold one itself: a file `PATH.json` beside it, in the words of `docker inspect`. */
import { readFile } from 'node:fs/promises';
import { errorMessage, RolloutFailure } from '@swefarm/shared';
import { type ImageConfig, readConfig } from './config.ts';

/** Null when there is none. Throws RolloutFailure image_pull for one that cannot be read as such. */
export async function configBeside(path: string): Promise<ImageConfig | null> {
  const file = `${path}.json`;
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return readConfig(JSON.parse(text));
  } catch (error) {
    throw new RolloutFailure(
      'image_pull',
      `${file} is no image configuration: ${errorMessage(error)}`.slice(0, 400),
    );
  }
}
