/**
 * Records the images that the farm pulled into an engine of this node. Only recorded images are removed. The node's workers share
 * the file.
 */
import { hash } from 'node:crypto';
import { lstat, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isTrusted, ownFolder, replaceFile } from '@swefarm/shared';
import { z } from 'zod';
import { withLock } from './lock.ts';

const Entry = z.object({
  id: z.string(),
  digest: z.string(),
  bytes: z.number(),
  pulled_at: z.number(),
  used_at: z.number(),
});
type PulledImage = z.infer<typeof Entry>;
const File = z.record(z.string(), Entry);

export type PulledImages = ReturnType<typeof openPulledImages>;

const USE_MS = 60_000;

export function openPulledImages(file: string) {
  const written = new Map<string, number>();
  const read = async (): Promise<Record<string, PulledImage>> => {
    const found = await lstat(file).catch(() => null);
    // In a world-writable folder, the list of another user could name images to remove.
    const text = found?.isFile() && isTrusted(found) ? await readFile(file, 'utf8').catch(() => null) : null;
    return text === null ? {} : File.parse(JSON.parse(text));
  };
  const change = async (edit: (all: Record<string, PulledImage>) => void): Promise<void> => {
    await ownFolder(dirname(file), { setting: 'images_dir', mayBeShared: true });
    await withLock(`${file}.lock`, async () => {
      const all = await read();
      edit(all);
      await replaceFile(file, JSON.stringify(all));
    });
  };
  return {
    list: async (): Promise<Map<string, PulledImage>> => new Map(Object.entries(await read())),
    add: (name: string, image: Omit<PulledImage, 'pulled_at' | 'used_at'>): Promise<void> =>
      change((all) => {
        all[name] = { ...image, pulled_at: Date.now(), used_at: Date.now() };
      }),
    /** Records a use. Writes the file at most once in {@link USE_MS} for each image. */
    async used(name: string): Promise<void> {
      const last = written.get(name) ?? 0;
      if (Date.now() - last < USE_MS) return;
      written.set(name, Date.now());
      await change((all) => {
        const known = all[name];
        if (known) known.used_at = Date.now();
      });
    },
    /** Runs `work` while no other process of this node runs work for the same image. */
    async exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
      await ownFolder(dirname(file), { setting: 'images_dir', mayBeShared: true });
      return await withLock(`${file}.${hash('sha256', name).slice(0, 16)}.lock`, work);
    },
    drop: (names: readonly string[]): Promise<void> =>
      change((all) => {
        for (const name of names) delete all[name];
      }),
  };
}
