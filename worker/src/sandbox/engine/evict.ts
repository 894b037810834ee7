/** Makes room on an engine's disk: what the farm itself brought and nobody uses goes, longest unused first. */
import { statfs } from 'node:fs/promises';
import { RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { withTag } from '../../images/names.ts';
import { leastUsed, type PulledImages } from '../../images/pulledimages.ts';
import { statusCode } from './errors.ts';

export type EvictDeps = {
  docker: Docker;
  brought: PulledImages;
  /** Share of the disk (0 to 1) from which on images go. */
  watermark: number;
  pins: readonly string[];
  /** Share of the disk that is used now; for tests. */
  usedShare?: () => Promise<number>;
};

/** Answers how many went. An image that a container uses, or that has another name, is the engine's to keep. */
export async function evict(deps: EvictDeps): Promise<number> {
  const { docker, brought } = deps;
  const usedShare = deps.usedShare ?? (() => shareOf(docker));
  if ((await usedShare()) < deps.watermark) return 0;
  let count = 0;
  for (const name of leastUsed(await brought.list(), deps.pins, Date.now())) {
    const gone = await remove(docker, name);
    if (gone !== 'kept') await brought.drop([name]);
    if (gone === 'removed') count += 1;
    if ((await usedShare()) < deps.watermark) break;
  }
  return count;
}

/** `kept`: a container uses it. */
export async function remove(docker: Docker, name: string): Promise<'removed' | 'absent' | 'kept'> {
  try {
    await docker.getImage(withTag(name)).remove();
    return 'removed';
  } catch (error) {
    if (statusCode(error) === 404) return 'absent';
    if (statusCode(error) === 409) return 'kept';
    throw new RolloutFailure('engine_unreachable', `removing ${name}`, { cause: error });
  }
}

/** Of the engine's own folder; 0 where that is on another machine. */
async function shareOf(docker: Docker): Promise<number> {
  const { DockerRootDir } = (await docker.info()) as { DockerRootDir?: string };
  const stats = DockerRootDir ? await statfs(DockerRootDir).catch(() => null) : null;
  return stats ? 1 - stats.bavail / stats.blocks : 0;
}
