/** Images on this node: local first, pulled otherwise, one pull at a time per image whoever asks. */
import { createSingleFlight, RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import type { Fetch } from '../../images/fetch.ts';
import { withTag } from '../../images/names.ts';
import type { PulledImages } from '../../images/pulledimages.ts';
import type { ReadyImage } from '../runtime.ts';
import { engineFailure, pullFailure, statusCode } from './errors.ts';

const PULL_TIMEOUT_MS = 3_600_000;

export type ImageDeps = { docker: Docker; fetch: Fetch; brought: PulledImages | null };

export function imageSource({
  docker,
  fetch,
  brought,
}: ImageDeps): (image: string, signal: AbortSignal) => Promise<ReadyImage> {
  const pulls = createSingleFlight<void>();

  const local = async (image: string): Promise<ReadyImage | null> => {
    try {
      const found = await docker.getImage(withTag(image)).inspect();
      return { name: image, digest: found.RepoDigests?.[0]?.split('@')[1] ?? found.Id, ref: found.Id };
    } catch (error) {
      if (statusCode(error) === 404) return null;
      throw engineFailure(error, 'engine_unreachable', `looking for ${image}`);
    }
  };

  return async (image, signal) => {
    const present = await local(image);
    if (present) {
      await brought?.used(image);
      return present;
    }
    await pulls.run(image, () => pullImage({ docker, fetch, brought }, image), signal);
    const pulled = await local(image);
    if (!pulled) throw new RolloutFailure('image_pull', `${image} was pulled and is not there`);
    return { ...pulled, pulled: true };
  };
}

/** Throws RolloutFailure image_not_found / image_pull / node_disk / engine_unreachable. */
export async function pullImage({ docker, fetch, brought }: ImageDeps, image: string): Promise<void> {
  try {
    await fetch(image, async (from) => {
      await pullAs(docker, withTag(from));
      if (from !== image) await rename(docker, withTag(from), withTag(image));
    });
  } catch (error) {
    throw pullFailure(error, image);
  }
  const { Id, Size, RepoDigests } = await docker.getImage(withTag(image)).inspect();
  await brought?.add(image, { id: Id, digest: RepoDigests?.[0]?.split('@')[1] ?? Id, bytes: Size });
}

async function pullAs(docker: Docker, name: string): Promise<void> {
  const stream = await docker.pull(name, { abortSignal: AbortSignal.timeout(PULL_TIMEOUT_MS) });
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(stream, (error, lines: { error?: string }[] | null) => {
      // Podman tells of a failure in a line that ends the stream like any other.
      const told = lines?.find((line) => line.error)?.error;
      if (error ?? told) reject(error ?? new Error(told));
      else resolve();
    });
  });
}

/** What came from a mirror gets the name that was asked for, and only that. */
async function rename(docker: Docker, from: string, to: string): Promise<void> {
  if (to.includes('@')) return;
  const at = to.lastIndexOf(':');
  await docker.getImage(from).tag({ repo: to.slice(0, at), tag: to.slice(at + 1) });
  await docker.getImage(from).remove();
}
