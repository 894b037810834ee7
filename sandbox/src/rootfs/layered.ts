/**
 * Unpacks images of registries into the store of a node. Images share the files of their common lower layers: the store has a tree of
 * these layers once, and each image has hard links to its files. Trees of the store are never written after their unpacking.
 */
import { hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EMPTY_CONFIG } from '../images/config.ts';
import { type ImageStore, requireDisk, type StoredImage, type Unpacked } from '../images/store.ts';
import type { RemoteLayer } from '../registry/remoteimage.ts';
import type { OpenImage, RegistrySource } from '../registry/source.ts';
import { run } from '../run.ts';
import { unpackApart } from './unpack.ts';

/** Layers with less than this many bytes get no tree of their own, because a tree has a link for each file below. */
const LEAST_BYTES = 1024 ** 2;
/** A tree is worth its links if its layers have at least this share of the bytes below. */
const LEAST_SHARE = 1 / 16;
/** Least factor by which layers grow when they are decompressed. */
const GROWTH = 2;

type LayeredDeps = { store: ImageStore; registry: RegistrySource };

/**
 * Splits layers into the parts that have one tree each. The end of a part depends only on the layers up to it, so that images with the
 * same lower layers share parts.
 */
export function partsOf<T extends Pick<RemoteLayer, 'size'>>(layers: readonly T[]): T[][] {
  const parts: T[][] = [];
  let part: T[] = [];
  let [below, bytes] = [0, 0];
  for (const layer of layers) {
    part.push(layer);
    bytes += layer.size;
    if (bytes < LEAST_BYTES || bytes < below * LEAST_SHARE) continue;
    parts.push(part);
    part = [];
    [below, bytes] = [below + bytes, 0];
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

/** Returns the identity of a sequence of layers: ChainID of the OCI image specification. */
export function chainOf(layers: readonly Pick<RemoteLayer, 'diffId'>[]): string {
  const [first, ...others] = layers.map(({ diffId }) => diffId);
  return others.reduce((chain, diffId) => `sha256:${hash('sha256', `${chain} ${diffId}`)}`, first ?? '');
}

/**
 * Writes an image into the folder `partial`. Fetches all missing layers at once. Throws RolloutFailure node_disk, errors of the registry
 * and of the unpacking.
 */
export async function unpackLayered(deps: LayeredDeps, image: OpenImage, partial: string): Promise<Unpacked> {
  return await unpackParts(deps, image, partsOf(image.layers), partial, {
    digest: image.digest,
    config: image.config,
  });
}

async function unpackParts(
  deps: LayeredDeps,
  image: OpenImage,
  parts: readonly RemoteLayer[][],
  partial: string,
  known: Pick<Unpacked, 'digest' | 'config'>,
): Promise<Unpacked> {
  const layers = parts.at(-1) ?? [];
  const bytes = layers.reduce((sum, { size }) => sum + size, 0);
  await requireDisk(partial, bytes * (1 + GROWTH));
  const blobs = join(partial, 'blobs');
  // The files of the lower layers are linked at once, because the tree may be evicted during the wait for the layers above.
  const linked = async (): Promise<StoredImage> => {
    const below = await ensureBelow(deps, image, parts.slice(0, -1));
    await run('cp', ['-a', '--link', `${below.tree}/.`, join(partial, 'tree')]);
    return below;
  };
  const [below, ...files] = await allEnded([
    parts.length > 1 ? linked() : null,
    ...layers.map(async (layer) => ({ path: await image.layer(layer, blobs), diffId: layer.diffId })),
  ]);
  try {
    const unpacked = await unpackApart({ source: { kind: 'layers', layers: files, known }, partial });
    await Promise.all([deps.registry.release(layers), rm(blobs, { recursive: true, force: true })]);
    // An image without files of its own takes space by its folders and links.
    const own = { ...unpacked, bytes: Math.max(1, unpacked.bytes) };
    return below ? { ...own, below: below.digest } : own;
  } catch (error) {
    if (!isOfSystem(error)) {
      // The next attempt fetches damaged layers again.
      await deps.registry.release(layers);
      await Promise.all(layers.map((layer) => image.dropDamaged(layer)));
    }
    throw error;
  }
}

/** Waits for the end of all promises, because the caller removes the folder into which they write. Throws the first rejection. */
async function allEnded<T extends readonly unknown[] | []>(
  promises: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(promises);
  return await Promise.all(promises);
}

/** Returns whether a system call failed, for example on a full disk. All other errors of an unpacking come from the content. */
const isOfSystem = (error: unknown): boolean =>
  /^E[A-Z0-9]+$/.test(String((error as NodeJS.ErrnoException).code));

/** Returns the tree of an image's lower layers; unpacks a missing tree. */
async function ensureBelow(
  deps: LayeredDeps,
  image: OpenImage,
  parts: readonly RemoteLayer[][],
): Promise<StoredImage> {
  // The digest of an image is never the hash of this text, so a tree of lower layers is no image, and no image is such a tree.
  const digest = `sha256:${hash('sha256', `below ${chainOf(parts.flat())}`)}`;
  return await deps.store.ensure(digest, async (partial) => ({
    ...(await unpackParts(deps, image, parts, partial, { digest, config: EMPTY_CONFIG })),
    shared: true,
  }));
}
