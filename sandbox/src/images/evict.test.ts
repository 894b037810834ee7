import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, it } from 'vitest';
import { EMPTY_CONFIG } from './config.ts';
import { evictUnpacked, longestUnused } from './evict.ts';
import { type ImageStore, openImageStore, type Unpacked } from './store.ts';

let folder: string;
let store: ImageStore;
beforeEach(async () => {
  folder = temporaryFolder('evict');
  store = await openImageStore(folder);
});

const digestOf = (letter: string): string => `sha256:${letter.repeat(64)}`;
async function unpacked(
  letter: string,
  name: string | null,
  bytes = 1,
  more: Partial<Unpacked> = {},
): Promise<void> {
  const digest = digestOf(letter);
  await store.ensure(
    digest,
    async (partial) => {
      writeFileSync(join(partial, 'tree', 'file'), 'x');
      return { digest, config: EMPTY_CONFIG, bytes, ...more };
    },
    new AbortController().signal,
  );
  if (name !== null) await store.name(name, digest);
}
const left = async (): Promise<string[]> => (await store.list()).map(({ digest }) => digest.charAt(7)).sort();
const HOUR_MS = 3_600_000;

it('evicts nothing below the watermark, and no recently used image', async () => {
  await unpacked('a', 'some/a:latest');
  const limits = { watermark: 0.8, pins: [] };
  const later = Date.now() + HOUR_MS;
  expect(await evictUnpacked(store, [], { ...limits, usedShare: async () => 0.7, now: later })).toBe(0);
  expect(await evictUnpacked(store, [], { ...limits, usedShare: async () => 0.9 })).toBe(0);
  expect(await left()).toEqual(['a']);
});

it('evicts the longest unused images, and none that is pinned, in use or without size', async () => {
  await unpacked('a', 'some/a:latest');
  await unpacked('b', 'pinned/b:latest');
  await unpacked('c', 'some/c:latest');
  await unpacked('d', null);
  await unpacked('e', 'some/e:latest');
  await unpacked('f', 'host', 0);
  // The images were last used in the order b, c, e, d, a. `c` has a running sandbox, which renews its time of use.
  const now = Date.now() + HOUR_MS;
  const touched: string[] = [];
  const usedAt = (digest: string): number =>
    touched.includes(digest) ? now : 'bceda'.indexOf(digest.charAt(7));
  const seen: ImageStore = {
    ...store,
    touch: async (digest) => void touched.push(digest),
    list: async () => (await store.list()).map((image) => ({ ...image, usedAt: usedAt(image.digest) })),
  };
  const shares = [0.9, 0.9, 0.7];
  const usedShare = async (): Promise<number> => shares.shift() ?? 0;
  const inUse = [digestOf('c'), digestOf('c')];
  const limits = { watermark: 0.8, pins: ['pinned/*'], usedShare, now };
  expect(await evictUnpacked(seen, inUse, limits)).toBe(2);
  expect(touched).toEqual([digestOf('c')]);
  expect(await left()).toEqual(['a', 'b', 'c']);
  expect(await store.find(digestOf('e'))).toBeNull();
  expect(existsSync((await store.find(digestOf('f')))?.tree ?? '')).toBe(true);
  expect(readdirSync(join(store.root, 'partial'))).toEqual([]);
});

it('evicts trees of lower layers only after the images that are based on them', async () => {
  await unpacked('a', null, 1, { shared: true });
  await unpacked('b', null, 1, { shared: true, below: digestOf('a') });
  await unpacked('c', 'pinned/c:latest', 1, { below: digestOf('a') });
  await unpacked('d', 'some/d:latest', 1, { below: digestOf('b') });
  await unpacked('e', null, 1, { shared: true });
  const limits = { watermark: 0.8, pins: ['pinned/*'], now: Date.now() + HOUR_MS };
  // `e` has no image. `d` is used later than the trees.
  await store.touch(digestOf('d'));
  expect(await evictUnpacked(store, [], { ...limits, usedShare: async () => 0.9 })).toBe(3);
  expect(await left()).toEqual(['a', 'c']);
});

it('orders images by their last use, without pinned and recently used ones', () => {
  const image = (name: string, usedAt: number) => ({ names: [name], usedAt });
  const images = [image('late', 2), image('early', 1), image('base/pinned:1', 0), image('now', HOUR_MS)];
  const names = longestUnused(images, ['base/*'], HOUR_MS).map((one) => one.names[0]);
  expect(names).toEqual(['early', 'late']);
});
