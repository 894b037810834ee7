/** Frees disk space: while the disk is too full, removes images that are not in use, longest unused first. */
import { statfs } from 'node:fs/promises';
import type { ImageStore } from './store.ts';

/** Minimum time since the last use of a removed image: other containers of a recently used image may start soon. */
const REST_MS = 10 * 60_000;

type UsedImage = { names: readonly string[]; usedAt: number };

export type EvictionLimits = {
  /** Used share of the disk (0 to 1) from which images are removed; 1: never. */
  watermark: number;
  /** Names of images that are never removed; `*` stands for anything. */
  pins: readonly string[];
  /** Used share of the disk; only tests pass it and `now`. */
  usedShare?(): Promise<number>;
  now?: number;
};

/** Returns the number of removed images. @param remove returns false when the image was in use or absent */
export async function evictImages<T extends UsedImage>(
  list: () => Promise<readonly T[]>,
  remove: (image: T) => Promise<boolean>,
  measure: () => Promise<number>,
  { watermark, pins, usedShare = measure, now = Date.now() }: EvictionLimits,
): Promise<number> {
  if (watermark >= 1 || (await usedShare()) < watermark) return 0;
  let count = 0;
  for (const image of longestUnused(await list(), pins, now)) {
    if (await remove(image)) count += 1;
    if ((await usedShare()) < watermark) break;
  }
  return count;
}

export function longestUnused<T extends UsedImage>(
  images: readonly T[],
  pins: readonly string[],
  now: number,
): T[] {
  const patterns = pins.map(
    (pin) => new RegExp(`^${pin.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`),
  );
  const isPinned = ({ names }: T): boolean =>
    names
      .flatMap((name) => [name, name.replace(/:latest$/, '')])
      .some((name) => patterns.some((pattern) => pattern.test(name)));
  return images
    .filter((image) => now - image.usedAt >= REST_MS && !isPinned(image))
    .sort((a, b) => a.usedAt - b.usedAt);
}

/** Evicts unpacked images of a node. @param inUse digests of the images of this process's sandboxes */
export async function evictUnpacked(
  store: ImageStore,
  inUse: Iterable<string>,
  limits: EvictionLimits,
): Promise<number> {
  // The updated times of use show the node's other workers that these images are in use.
  for (const digest of new Set(inUse)) await store.touch(digest);
  const remove = async ({ digest }: { digest: string }): Promise<boolean> => {
    await store.drop(digest);
    return true;
  };
  return await evictImages(store.list, remove, () => usedShareOf(store.root), limits);
}

export async function usedShareOf(folder: string): Promise<number> {
  const { bavail, blocks } = await statfs(folder);
  return 1 - bavail / blocks;
}
