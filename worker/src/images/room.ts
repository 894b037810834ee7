/** Makes room among the unpacked images of a node: those that nobody used for long go, longest unused first. */
import { statfs } from 'node:fs/promises';
import { pinnedBy, REST_MS } from './pulledimages.ts';
import type { ImageStore, KeptImage } from './store.ts';

export type RoomDeps = {
  store: ImageStore;
  /** Share of the disk (0 to 1) from which on images go; 1: never. */
  watermark: number;
  pins: readonly string[];
  /** Digests of the images whose sandboxes this process runs: other workers of the node see by their stamps that they are in use. */
  inUse: Iterable<string>;
  /** Share of the disk that is used now; for tests. */
  usedShare?: () => Promise<number>;
  now?: number;
};

/** Answers how many went. */
export async function makeRoom({ store, pins, ...deps }: RoomDeps): Promise<number> {
  for (const digest of new Set(deps.inUse)) await store.touch(digest);
  const usedShare = deps.usedShare ?? (() => shareOf(store.root));
  if (deps.watermark >= 1 || (await usedShare()) < deps.watermark) return 0;
  const now = deps.now ?? Date.now();
  const pinned = pinnedBy(pins);
  const isPinned = ({ names }: KeptImage): boolean =>
    names.some((name) => pinned(name) || pinned(name.replace(/:latest$/, '')));
  const resting = (await store.kept())
    .filter((image) => now - image.usedAt >= REST_MS && !isPinned(image))
    .sort((a, b) => a.usedAt - b.usedAt);
  let count = 0;
  for (const { digest } of resting) {
    await store.drop(digest);
    count += 1;
    if ((await usedShare()) < deps.watermark) break;
  }
  return count;
}

async function shareOf(folder: string): Promise<number> {
  const { bavail, blocks } = await statfs(folder);
  return 1 - bavail / blocks;
}
