/** Removes the images that a build leaves beside its result: those of a failed build's steps, and the stages before the last. */
import { errorMessage, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { statusCode } from './errors.ts';

/** Attempts to remove an image of an interrupted step, whose container the engine is still removing. */
const ATTEMPTS = 10;
const PAUSE_MS = 500;

/**
 * Removes images without a name and without children. Ignores failures.
 * @param ids images in the order of their creation
 * @param began start of the build, in ms: older images belong to others, such as the base and the steps of the builder's cache
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
