/** Images that an engine on this node has, or can pull: exported from a container that is created and never started. */
import { access } from 'node:fs/promises';
import { errorMessage, ownStartMark, RolloutFailure } from '@swefarm/shared';
import Docker from 'dockerode';
import { readConfig } from '../../images/config.ts';
import type { Fetch } from '../../images/fetch.ts';
import { withTag } from '../../images/names.ts';
import { isGone } from '../../images/partials.ts';
import type { PulledImages } from '../../images/pulledimages.ts';
import { requireDisk, type Unpacked } from '../../images/store.ts';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { evict } from '../engine/evict.ts';
import { pullImage } from '../engine/images.ts';
import { unpackInThread } from './unpacking.ts';

/** Carries `pid:started` of the exporting process: who finds one of a dead process removes it. */
const EXPORT_LABEL = 'swefarm.export';

export type EngineImage = { digest: string; sizeBytes: number; config: Unpacked['config'] };

export type EngineSource = {
  /** Null when the engine does not have the image, or no engine answers. */
  inspect(name: string): Promise<EngineImage | null>;
  /** Null when no engine answers. Throws RolloutFailure image_not_found / image_pull. */
  pull(name: string): Promise<EngineImage | null>;
  export(name: string, image: EngineImage, partial: string, signal: AbortSignal): Promise<Unpacked>;
  /** Removes from the engine what the farm brought there, when its disk is full; answers how many went. */
  evict(settings: { watermark: number; pins: readonly string[] }): Promise<number>;
};

export type EngineOptions = {
  socketPath: string;
  /** How images come to the engine. */
  fetch: Fetch;
  /** Where is written which of them the farm brought; null: nowhere. */
  brought: PulledImages | null;
};

export function engineSource({ socketPath, fetch, brought }: EngineOptions): EngineSource {
  const docker = new Docker({ socketPath });
  const reachable = (): Promise<boolean> =>
    access(socketPath)
      .then(() => docker.ping())
      .then(
        () => true,
        () => false,
      );

  const inspect = async (name: string): Promise<EngineImage | null> => {
    try {
      const found = await docker.getImage(withTag(name)).inspect();
      return { digest: found.Id, sizeBytes: found.Size, config: readConfig(found.Config) };
    } catch (error) {
      if (statusCode(error) === 404 || !(await reachable())) return null;
      throw engineFailure(error, 'image_pull', `looking for ${name}`);
    }
  };

  return {
    inspect,
    async pull(name) {
      if (!(await reachable())) return null;
      await pullImage({ docker, fetch, brought }, name);
      const image = await inspect(name);
      if (!image) throw new RolloutFailure('image_pull', `${name} was pulled and is not there`);
      return image;
    },
    async evict(settings) {
      if (!brought || (await brought.list()).size === 0 || !(await reachable())) return 0;
      return await evict({ docker, brought, ...settings });
    },
    async export(name, image, partial, signal) {
      await requireDisk(partial, image.sizeBytes);
      await removeOrphans(docker);
      let id: string | null = null;
      try {
        // By digest: the name may stand for another image by now.
        const created = await docker.createContainer({
          Image: image.digest,
          Cmd: ['true'],
          NetworkDisabled: true,
          Labels: { [EXPORT_LABEL]: `${process.pid}:${ownStartMark()}` },
        });
        id = created.id;
        const known = { digest: image.digest, config: image.config };
        const owners = process.getuid?.() === 0;
        return await unpackInThread(
          { source: { kind: 'export', socketPath, container: id, known }, partial, owners },
          signal,
        );
      } catch (error) {
        signal.throwIfAborted();
        throw engineFailure(error, 'image_pull', `exporting ${name} from the engine at ${socketPath}`);
      } finally {
        if (id) await removeContainer(docker, id);
      }
    },
  };
}

async function removeOrphans(docker: Docker): Promise<void> {
  const found = await docker.listContainers({ all: true, filters: { label: [EXPORT_LABEL] } });
  for (const { Id, Labels, Created } of found) {
    const [pid = '', started = ''] = (Labels[EXPORT_LABEL] ?? '').split(':');
    if (isGone(pid, started, Created * 1000)) await removeContainer(docker, Id);
  }
}

/** Somebody else may be removing it, or the engine may have gone: the next export tries again. */
async function removeContainer(docker: Docker, id: string): Promise<void> {
  await docker
    .getContainer(id)
    .remove({ force: true })
    .catch((error: unknown) => errorMessage(error));
}
