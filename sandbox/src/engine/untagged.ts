/** Removes intermediate images of a build: the images of a failed build's steps, and all stages before the last. */
import { errorMessage, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { statusCode } from './errors.ts';

/** Number of attempts to remove an image: the engine may still be removing the container of an interrupted step. */
const ATTEMPTS = 10;
const PAUSE_MS = 500;

/**
 * Removes images without a name and without children. Ignores failures.
 * @param ids ids of images in the order of creation
 * @param began start of the build, in ms since the epoch. Older images remain, because they are base images or cached steps.
 */
export async function removeUntagged(docker: Docker, ids: readonly string[], began: number): Promise<void> {
  for (const id of ids.toReversed()) {
    const found = await docker
      .getImage(id)
      .inspect()
      .catch(() => null);
    if (found && found.RepoTags?.length === 0 && Date.parse(found.Created) >= began)
      await removeImage(docker, found.Id);
  }
}

async function removeImage(docker: Docker, id: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      await docker.getImage(id).remove({ noprune: true });
      return;
    } catch (error) {
      if (statusCode(error) !== 409 || !/container/.test(errorMessage(error))) return;
      await sleep(PAUSE_MS);
    }
  }
}
