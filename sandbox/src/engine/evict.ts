/** Reports and removes images that the farm pulled into an engine. */
import { RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { type EvictionLimits, evictImages, longestUnused, usedShareOf } from '../images/evict.ts';
import { withTag } from '../images/names.ts';
import type { PulledImages } from '../images/pulledimages.ts';
import type { ImageInspection, ImageLine } from '../runtime.ts';
import { engineFailure, statusCode } from './errors.ts';
import { digestOf } from './images.ts';

/** Returns the number of removed images. The engine does not remove an image that a container uses, or that has another name. */
export async function evictPulled({
  docker,
  pulled,
  ...limits
}: EvictionLimits & { docker: Docker; pulled: PulledImages }): Promise<number> {
  const list = () => usesOf(pulled);
  const remove = async ({ image }: { image: string }): Promise<boolean> =>
    (await removeImage(docker, pulled, image)) === 'removed';
  return await evictImages(list, remove, () => engineUsedShare(docker), limits);
}

const usesOf = async (pulled: PulledImages) =>
  [...(await pulled.list())].map(([image, { used_at, bytes }]) => ({
    ...{ image, bytes, names: [image], usedAt: used_at },
  }));

/** Removes an image and its record; `kept`: a container uses the image. Throws RolloutFailure engine_unreachable. */
async function removeImage(
  docker: Docker,
  pulled: PulledImages,
  image: string,
): Promise<'removed' | 'absent' | 'kept'> {
  const removal: Promise<unknown> = docker.getImage(withTag(image)).remove();
  const outcome = await removal.then(
    () => 'removed' as const,
    (error: unknown) => {
      if (statusCode(error) === 404) return 'absent';
      if (statusCode(error) === 409) return 'kept';
      throw new RolloutFailure('engine_unreachable', `removing ${image}`, { cause: error });
    },
  );
  if (outcome !== 'kept') await pulled.drop([image]);
  return outcome;
}

/** Returns the used share of the disk with the engine's folder; 0 if the engine is on another machine. */
async function engineUsedShare(docker: Docker): Promise<number> {
  const { DockerRootDir } = (await docker.info()) as { DockerRootDir?: string };
  return DockerRootDir ? await usedShareOf(DockerRootDir).catch(() => 0) : 0;
}

/** Returns the part of the runtime that `swefarm images` uses. */
export function inspectEngineImages(
  docker: Docker,
  pulled: PulledImages,
  pins: readonly string[],
): ImageInspection {
  return {
    async look(image, verify) {
      try {
        const found = await docker.getImage(withTag(image)).inspect();
        const entry = verify ? (await pulled.list()).get(image) : undefined;
        const line = { image, digest: digestOf(found), bytes: found.Size };
        return entry !== undefined && entry.id !== found.Id
          ? { ...line, status: 'changed', error: `it was ${entry.id} when the farm pulled it` }
          : { ...line, status: 'present' };
      } catch (error) {
        if (statusCode(error) === 404) return { image, status: 'absent' };
        throw engineFailure(error, 'engine_unreachable', `looking for ${image}`);
      }
    },
    async prune(needed) {
      const all = await usesOf(pulled);
      const removable = new Set(longestUnused(all, pins, Date.now()));
      const lines: ImageLine[] = [];
      for (const one of all) {
        const { image, bytes } = one;
        if (needed.has(image)) continue;
        const status = removable.has(one) ? await removeImage(docker, pulled, image) : 'kept';
        lines.push({ image, status, bytes });
      }
      return lines;
    },
  };
}
