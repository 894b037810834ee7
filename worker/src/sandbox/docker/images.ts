/** Images on this node: local first, pulled otherwise, one pull at a time per image whoever asks. */
import { RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { untilAborted } from '../abort.ts';
import type { ReadyImage } from '../runtime.ts';
import { engineFailure, pullFailure, statusCode } from './errors.ts';

const PULL_TIMEOUT_MS = 3_600_000;

/** With the tag spelled out: without one the engine would pull every tag. */
export function withTag(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  return image.includes('@') || last.includes(':') || image.startsWith('sha256:') ? image : `${image}:latest`;
}

export function imageSource(docker: Docker): (image: string, signal: AbortSignal) => Promise<ReadyImage> {
  const pulls = new Map<string, Promise<void>>();

  const local = async (image: string): Promise<ReadyImage | null> => {
    try {
      const found = await docker.getImage(withTag(image)).inspect();
      return { name: image, digest: found.RepoDigests?.[0]?.split('@')[1] ?? found.Id, ref: found.Id };
    } catch (error) {
      if (statusCode(error) === 404) return null;
      throw engineFailure(error, 'engine_unreachable', `looking for ${image}`);
    }
  };

  const pull = async (image: string): Promise<void> => {
    try {
      const stream = await docker.pull(withTag(image), { abortSignal: AbortSignal.timeout(PULL_TIMEOUT_MS) });
      await new Promise<void>((resolve, reject) => {
        docker.modem.followProgress(stream, (error, lines: { error?: string }[] | null) => {
          // Podman tells of a failure in a line that ends the stream like any other.
          const told = lines?.find((line) => line.error)?.error;
          if (error ?? told) reject(error ?? new Error(told));
          else resolve();
        });
      });
    } catch (error) {
      throw pullFailure(error, image);
    } finally {
      pulls.delete(image);
    }
  };

  return async (image, signal) => {
    const present = await local(image);
    if (present) return present;
    let pulling = pulls.get(image);
    if (!pulling) {
      pulling = pull(image);
      // Whoever waits sees the error; without this a pull nobody waits for any more would be an unhandled one.
      pulling.catch(() => undefined);
      pulls.set(image, pulling);
    }
    await untilAborted(pulling, signal);
    const pulled = await local(image);
    if (!pulled) throw new RolloutFailure('image_pull', `${image} was pulled and is not there`);
    return { ...pulled, pulled: true };
  };
}
