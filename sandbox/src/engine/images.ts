/** Finds images in an engine. A missing image is pulled once for all callers. */
import { promisify } from 'node:util';
import { BUILT_IMAGES, createSingleFlight, RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { readConfig } from '../images/config.ts';
import type { Credentials } from '../images/credentials.ts';
import type { Fetch } from '../images/fetch.ts';
import { withTag } from '../images/names.ts';
import type { PulledImages } from '../images/pulledimages.ts';
import type { ReadyImage } from '../runtime.ts';
import { engineFailure, pullFailure, statusCode } from './errors.ts';

const PULL_TIMEOUT_MS = 3_600_000;

export type EngineImageDeps = {
  docker: Docker;
  fetch: Fetch;
  /** Records the pulled images; null: no record. */
  pulled: PulledImages | null;
};

/** Returns a function that makes an image ready. It throws RolloutFailure image_not_found / image_pull / node_disk / engine_unreachable. */
export function createEnsureImage(
  deps: EngineImageDeps,
): (image: string, signal: AbortSignal) => Promise<ReadyImage> {
  const pulls = createSingleFlight<void>();
  return async (image, signal) => {
    const present = await findImage(deps.docker, image);
    if (present) {
      await deps.pulled?.used(image);
      return present;
    }
    await pulls.run(image, () => pullImage(deps, image), signal);
    const found = await findImage(deps.docker, image);
    if (!found) throw new RolloutFailure('image_pull', `${image} is missing after its pull`);
    return { ...found, pulled: true };
  };
}

/** Pulls an image. Throws RolloutFailure image_not_found / image_pull / node_disk / engine_unreachable. */
export async function pullImage({ docker, fetch, pulled }: EngineImageDeps, image: string): Promise<void> {
  // Only nodes of the farm build images with this prefix. Without this check, the engine would request the image from its registries.
  if (image.startsWith(BUILT_IMAGES))
    throw new RolloutFailure('image_not_found', `${image} is built from a task and never pulled`);
  try {
    await fetch(image, async (from, credentials) => {
      await pullAs(docker, withTag(from), credentials);
      if (from !== image) await rename(docker, withTag(from), withTag(image));
    });
  } catch (error) {
    throw pullFailure(error, image);
  }
  const found = await docker.getImage(withTag(image)).inspect();
  await pulled?.add(image, { id: found.Id, digest: digestOf(found), bytes: found.Size });
}

export const digestOf = ({ Id, RepoDigests }: Docker.ImageInspectInfo): string =>
  RepoDigests?.[0]?.split('@')[1] ?? Id;

export async function findImage(docker: Docker, image: string): Promise<ReadyImage | null> {
  try {
    const found = await docker.getImage(withTag(image)).inspect();
    const { user, workdir, entrypoint } = readConfig(found.Config);
    const named = {
      ...(user ? { user } : {}),
      ...(workdir ? { workdir } : {}),
      ...(entrypoint ? { entrypoint } : {}),
    };
    return { name: image, digest: digestOf(found), ref: found.Id, ...named };
  } catch (error) {
    if (statusCode(error) === 404) return null;
    throw engineFailure(error, 'engine_unreachable', `looking for ${image}`);
  }
}

async function pullAs(docker: Docker, name: string, credentials: Credentials | null): Promise<void> {
  const stream = await docker.pull(name, {
    abortSignal: AbortSignal.timeout(PULL_TIMEOUT_MS),
    ...(credentials && { authconfig: credentials }),
  });
  const { modem } = docker;
  const lines = (await promisify(modem.followProgress.bind(modem))(stream)) as { error?: string }[] | null;
  // Podman reports a failure in a line of a stream that ends without an error.
  const problem = lines?.find((line) => line.error)?.error;
  if (problem) throw new Error(problem);
}

/** Gives an image from a mirror the requested name, and removes the mirror's name. Ignores names with a digest, which cannot be given. */
async function rename(docker: Docker, from: string, to: string): Promise<void> {
  if (to.includes('@')) return;
  const at = to.lastIndexOf(':');
  await docker.getImage(from).tag({ repo: to.slice(0, at), tag: to.slice(at + 1) });
  await docker.getImage(from).remove();
}
