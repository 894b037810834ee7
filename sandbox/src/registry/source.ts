/** Fetches images of registries without an engine: documents from the first source that answers, and blobs into a store of blobs. */
import { constants } from 'node:fs';
import { copyFile, link, mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { BUILT_IMAGES, createSemaphore, RolloutFailure } from '@swefarm/shared';
import { type EvictionLimits, evictImages, usedShareOf } from '../images/evict.ts';
import type { Fetch } from '../images/fetch.ts';
import { type BlobStore, openBlobStore } from './blobs.ts';
import { Repository } from './client.ts';
import { type Connections, openConnections } from './connection.ts';
import { pullFailure } from './errors.ts';
import { parseReference } from './reference.ts';
import { type RemoteImage, type RemoteLayer, readRemoteImage } from './remoteimage.ts';
import type { RegistrySettings } from './settings.ts';

const PULL_TIMEOUT_MS = 3_600_000;
const LAYERS_AT_ONCE = 4;

export type OpenImage = RemoteImage & {
  /**
   * Writes a layer's blob to the folder `own` and returns its path; first fetches a missing blob. The file is a link to the blob of the
   * store, or a copy on another file system, so that it remains when the store loses the blob.
   */
  layer(layer: RemoteLayer, own: string): Promise<string>;
  /** Removes a blob of the store whose content has another digest. The next `layer` fetches it again. */
  dropDamaged(layer: RemoteLayer): Promise<void>;
};

export type RegistryOptions = RegistrySettings & {
  fetch: Fetch;
  /** Folder of the blobs of this node, if there is no folder for all nodes. */
  folder: string;
};

export class RegistrySource implements AsyncDisposable {
  readonly #options: RegistryOptions;
  readonly #slots = createSemaphore(LAYERS_AT_ONCE);
  #connections: Connections | null = null;
  #blobs: Promise<BlobStore> | null = null;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Opened at the first pull, because many workers pull nothing. Throws UsageError for a folder that cannot be used. */
  get blobs(): Promise<BlobStore> {
    const { blobsDir, folder } = this.#options;
    const uid = process.getuid?.() ?? 0;
    this.#blobs ??=
      blobsDir === null
        ? openBlobStore(folder, 'images_dir')
        : // Each user has a store, as in images_dir.
          openBlobStore(join(blobsDir, uid === 0 ? 'v1' : `v1.uid${uid}`), 'image_blobs_dir');
    return this.#blobs;
  }

  /**
   * Reads the documents of an image and passes the image to `work`, from mirrors first. A failure at a mirror, also of `work`, leads to the
   * next source. Throws RolloutFailure image_not_found / image_pull / node_disk, and failures of `work`.
   */
  async open<T>(image: string, work: (open: OpenImage) => Promise<T>): Promise<T> {
    if (image.startsWith(BUILT_IMAGES))
      throw new RolloutFailure('image_not_found', `${image} is built from a task and never pulled`);
    try {
      this.#connections ??= openConnections(this.#options);
      const connections = this.#connections;
      const blobs = await this.blobs;
      return await this.#options.fetch(image, async (from, credentials) => {
        const signal = AbortSignal.timeout(PULL_TIMEOUT_MS);
        const reference = parseReference(from);
        const repository = new Repository({ connections, reference, credentials, signal });
        const remote = await readRemoteImage(repository, reference);
        const fetched = (one: RemoteLayer): Promise<string> =>
          this.#slots.run(() => blobs.ensure(one, (at) => repository.blob(one.digest, at), signal));
        return await work({
          ...remote,
          layer: (one, own) => linkedInto(own, () => fetched(one)),
          dropDamaged: ({ digest }) => blobs.dropDamaged(digest),
        });
      });
    } catch (error) {
      throw pullFailure(error, image);
    }
  }

  /** Removes the blobs of unpacked layers, unless the store of blobs is for all nodes. */
  async release(layers: readonly RemoteLayer[]): Promise<void> {
    if (this.#options.blobsDir !== null) return;
    const blobs = await this.blobs;
    await Promise.all(layers.map(({ digest }) => blobs.drop(digest)));
  }

  /** Removes abandoned partial blobs, and unused blobs while their disk is too full. Returns the number of removed blobs. */
  async evict(limits: EvictionLimits): Promise<number> {
    if (this.#blobs === null) return 0;
    const blobs = await this.#blobs;
    await blobs.sweep();
    const remove = async ({ digest }: { digest: string }): Promise<boolean> => {
      await blobs.drop(digest);
      return true;
    };
    return await evictImages(blobs.list, remove, () => usedShareOf(blobs.folder), limits);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections?.[Symbol.asyncDispose]();
  }
}

/** Links or copies a blob into a folder. Fetches the blob again if another process removed it in the meantime. */
async function linkedInto(folder: string, fetch: () => Promise<string>): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (;;) {
    const path = await fetch();
    const own = join(folder, basename(path));
    try {
      await linkOrCopy(path, own);
      return own;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // An image may have a layer twice.
      if (code === 'EEXIST') return own;
      if (code !== 'ENOENT') throw error;
    }
  }
}

async function linkOrCopy(path: string, own: string): Promise<void> {
  await link(path, own).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EXDEV') throw error;
    await copyFile(path, own, constants.COPYFILE_EXCL);
  });
}
