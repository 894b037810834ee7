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
  let all: Listed = [];
  const removed = new Set<string>();
  const list = async (): Promise<Listed> => {
    all = await store.list();
    return treesLast(all);
  };
  const remove = async ({ digest, shared }: Listed[number]): Promise<boolean> => {
    if (shared && treesInUse(all, removed).has(digest)) return false;
    await store.drop(digest);
    removed.add(digest);
    return true;
  };
  return await evictImages(list, remove, () => usedShareOf(store.root), limits);
}

type Listed = Awaited<ReturnType<ImageStore['list']>>;

/** Returns the trees of lower layers on which images are based, without the images `removed`. */
export function treesInUse(all: Listed, removed: ReadonlySet<string>): Set<string> {
  const belowOf = new Map(all.map(({ digest, below }) => [digest, below]));
  const used = new Set<string>();
  for (const { digest, shared } of all) {
    if (shared || removed.has(digest)) continue;
    for (let below = belowOf.get(digest); below; below = belowOf.get(below)) used.add(below);
  }
  return used;
}

/** Orders trees of lower layers after the images that are based on them, whose removal makes the trees removable. */
function treesLast(all: Listed): Listed {
  const images = all.filter(({ shared }) => !shared);
  const usedAt = new Map<string, number>();
  for (const image of images)
    for (const tree of treesInUse([image, ...all.filter(({ shared }) => shared)], new Set()))
      usedAt.set(tree, Math.max(image.usedAt, usedAt.get(tree) ?? 0));
  const trees = all.filter(({ shared }) => shared);
  return [
    ...images,
    ...trees.map((tree) => ({ ...tree, usedAt: Math.max(tree.usedAt, usedAt.get(tree.digest) ?? 0) })),
  ];
}

export async function usedShareOf(folder: string): Promise<number> {
  const { bavail, blocks } = await statfs(folder);
  return 1 - bavail / blocks;
}
