/** Frees an engine's disk by removing only images that the farm pulled. */
import { RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { type EvictionLimits, evictImages, usedShareOf } from '../images/evict.ts';
import { withTag } from '../images/names.ts';
import type { PulledImages } from '../images/pulledimages.ts';
import { statusCode } from './errors.ts';

export type EngineEviction = { docker: Docker; pulled: PulledImages } & Omit<EvictionLimits, 'usedShare'> &
  Partial<Pick<EvictionLimits, 'usedShare'>>;

/** Returns the number of removed images. The engine does not remove an image that a container uses, or that has another name. */
export async function evictPulled({ docker, pulled, ...limits }: EngineEviction): Promise<number> {
  const list = async () =>
    [...(await pulled.list())].map(([name, { used_at }]) => ({ names: [name], name, usedAt: used_at }));
  const remove = async ({ name }: { name: string }): Promise<boolean> => {
    const outcome = await removeImage(docker, name);
    if (outcome !== 'kept') await pulled.drop([name]);
    return outcome === 'removed';
  };
  return await evictImages(list, remove, { usedShare: () => engineUsedShare(docker), ...limits });
}

/** Removes an image; `kept`: a container uses the image. Throws RolloutFailure engine_unreachable. */
export async function removeImage(docker: Docker, name: string): Promise<'removed' | 'absent' | 'kept'> {
  try {
    await docker.getImage(withTag(name)).remove();
    return 'removed';
  } catch (error) {
    if (statusCode(error) === 404) return 'absent';
    if (statusCode(error) === 409) return 'kept';
    throw new RolloutFailure('engine_unreachable', `removing ${name}`, { cause: error });
  }
}

/** Returns the used share of the disk with the engine's folder; 0 if the engine is on another machine. */
async function engineUsedShare(docker: Docker): Promise<number> {
  const { DockerRootDir } = (await docker.info()) as { DockerRootDir?: string };
  return DockerRootDir ? await usedShareOf(DockerRootDir).catch(() => 0) : 0;
}
