/** Unpacks images of this node's engine, by the export of a container that is created and never started. */
import { access } from 'node:fs/promises';
import { ownStartMark, RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { createBuild } from '../engine/build.ts';
import { openEngine } from '../engine/client.ts';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { evictPulled } from '../engine/evict.ts';
import { type EngineImageDeps, pullImage } from '../engine/images.ts';
import { readConfig } from '../images/config.ts';
import { withTag } from '../images/names.ts';
import { requireDisk, type Unpacked } from '../images/store.ts';
import { isOwnerGone } from '../images/temporary.ts';
import type { Runtime } from '../runtime.ts';
import { unpackApart } from './unpack.ts';

/** Label whose value is `pid:started` of the exporting process. An export removes the containers of dead processes. */
const EXPORT_LABEL = 'swefarm.export';

export type EngineImage = { digest: string; sizeBytes: number; config: Unpacked['config'] };

type ExporterOptions = Omit<EngineImageDeps, 'docker'> & {
  socketPath: string;
  /** Maximum number of concurrent builds. */
  atOnce?: number | undefined;
};

export class ImageExporter {
  readonly #options: ExporterOptions;
  /** Builds an image. Throws RolloutFailure image_build / image_not_built / image_pull / node_disk / engine_unreachable. */
  readonly build: NonNullable<Runtime['build']>;
  #opened: EngineImageDeps | null = null;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.build = createBuild(() => this.#deps, options.atOnce);
  }

  /** The engine is opened at the first use, because many nodes with this runtime have no engine. */
  get #deps(): EngineImageDeps {
    this.#opened ??= { ...this.#options, docker: openEngine(this.#options.socketPath) };
    return this.#opened;
  }

  /** Returns null if the engine lacks the image, or no engine answers. */
  async inspect(name: string): Promise<EngineImage | null> {
    try {
      const found = await this.#deps.docker.getImage(withTag(name)).inspect();
      return { digest: found.Id, sizeBytes: found.Size, config: readConfig(found.Config) };
    } catch (error) {
      if (statusCode(error) === 404 || !(await this.#isReachable())) return null;
      throw engineFailure(error, 'image_pull', `looking for ${name}`);
    }
  }

  /** Pulls an image; null if no engine answers. Throws RolloutFailure image_not_found / image_pull / node_disk / engine_unreachable. */
  async pull(name: string): Promise<EngineImage | null> {
    if (!(await this.#isReachable())) return null;
    await pullImage(this.#deps, name);
    const image = await this.inspect(name);
    if (!image) throw new RolloutFailure('image_pull', `${name} is missing after its pull`);
    return image;
  }

  /** Removes images that the farm pulled, if the engine's disk is too full. Returns the number of removed images. */
  async evict(settings: { watermark: number; pins: readonly string[] }): Promise<number> {
    const { pulled } = this.#options;
    if (!pulled || (await pulled.list()).size === 0 || !(await this.#isReachable())) return 0;
    return await evictPulled({ docker: this.#deps.docker, pulled, ...settings });
  }

  /** Unpacks the image into the folder `partial`. Throws RolloutFailure image_pull / node_disk. */
  async export(name: string, { digest, sizeBytes, config }: EngineImage, partial: string): Promise<Unpacked> {
    const { docker } = this.#deps;
    await requireDisk(partial, sizeBytes);
    await removeOrphans(docker);
    let id: string | null = null;
    try {
      // The container is created by digest, because the name may denote another image by now.
      const created = await docker.createContainer({
        Image: digest,
        Cmd: ['true'],
        NetworkDisabled: true,
        Labels: { [EXPORT_LABEL]: `${process.pid}:${ownStartMark()}` },
      });
      id = created.id;
      const source = {
        kind: 'export',
        socketPath: this.#options.socketPath,
        container: id,
        known: { digest, config },
      } as const;
      return await unpackApart({ source, partial });
    } catch (error) {
      throw engineFailure(
        error,
        'image_pull',
        `exporting ${name} from the engine at ${this.#options.socketPath}`,
      );
    } finally {
      if (id) await removeContainer(docker, id);
    }
  }

  async #isReachable(): Promise<boolean> {
    return await access(this.#options.socketPath)
      .then(() => this.#deps.docker.ping())
      .then(
        () => true,
        () => false,
      );
  }
}

async function removeOrphans(docker: Docker): Promise<void> {
  const found = await docker.listContainers({ all: true, filters: { label: [EXPORT_LABEL] } });
  for (const { Id, Labels, Created } of found) {
    const [pid = '', started = ''] = (Labels[EXPORT_LABEL] ?? '').split(':');
    if (isOwnerGone(pid, started, Created * 1000)) await removeContainer(docker, Id);
  }
}

/** Ignores failures: another process may be removing the container, or the engine may be gone. The next export tries again. */
async function removeContainer(docker: Docker, id: string): Promise<void> {
  await docker
    .getContainer(id)
    .remove({ force: true })
    .catch(() => undefined);
}
