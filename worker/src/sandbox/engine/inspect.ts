/** What an engine has of given images, for `swefarm images`: present, changed since the farm brought it, and what may go. */
import type Docker from 'dockerode';
import { withTag } from '../../images/names.ts';
import type { PulledImages } from '../../images/pulledimages.ts';
import { leastUsed } from '../../images/pulledimages.ts';
import type { ImageInspection } from '../runtime.ts';
import { engineFailure, statusCode } from './errors.ts';
import { remove } from './evict.ts';

export function inspectImages(
  docker: Docker,
  brought: PulledImages,
  pins: readonly string[],
): ImageInspection {
  return {
    async look(image, verify) {
      try {
        const found = await docker.getImage(withTag(image)).inspect();
        const digest = found.RepoDigests?.[0]?.split('@')[1] ?? found.Id;
        const entry = verify ? (await brought.list()).get(image) : undefined;
        const changed = entry !== undefined && entry.id !== found.Id;
        return {
          ...{ image, status: changed ? 'changed' : 'present', digest, bytes: found.Size },
          ...(changed ? { error: `it was ${entry.id} when the farm brought it` } : {}),
        };
      } catch (error) {
        if (statusCode(error) === 404) return { image, status: 'absent' };
        throw engineFailure(error, 'engine_unreachable', `looking for ${image}`);
      }
    },
    async prune(keep) {
      const all = await brought.list();
      const may = new Set(leastUsed(all, pins, Date.now()));
      const lines = [];
      for (const [image, { bytes }] of all) {
        if (keep.has(image)) continue;
        const gone = may.has(image) ? await remove(docker, image) : 'kept';
        if (gone !== 'kept') await brought.drop([image]);
        lines.push({ image, status: gone, bytes });
      }
      return lines;
    },
  };
}
