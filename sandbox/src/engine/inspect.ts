/** For `swefarm images`: reports the state of images in an engine, and removes unused images. */
import type Docker from 'dockerode';
import { longestUnused } from '../images/evict.ts';
import { withTag } from '../images/names.ts';
import type { PulledImages } from '../images/pulledimages.ts';
import type { ImageInspection, ImageLine } from '../runtime.ts';
import { engineFailure, statusCode } from './errors.ts';
import { removeImage } from './evict.ts';
import { digestOf } from './images.ts';

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
      const all = [...(await pulled.list())].map(([image, { used_at, bytes }]) => ({
        image,
        bytes,
        names: [image],
        usedAt: used_at,
      }));
      const removable = new Set(longestUnused(all, pins, Date.now()));
      const lines: ImageLine[] = [];
      for (const one of all) {
        const { image, bytes } = one;
        if (needed.has(image)) continue;
        const status = removable.has(one) ? await removeImage(docker, image) : 'kept';
        if (status !== 'kept') await pulled.drop([image]);
        lines.push({ image, status, bytes });
      }
      return lines;
    },
  };
}
