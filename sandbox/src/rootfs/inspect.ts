/** For `swefarm images`: reports, checks and removes the unpacked images of this node. */
import { stat } from 'node:fs/promises';
import { longestUnused, treesInUse } from '../images/evict.ts';
import { withTag } from '../images/names.ts';
import type { ImageStore } from '../images/store.ts';
import type { ImageInspection, ImageLine } from '../runtime.ts';
import { FORMS } from './forms.ts';

export function inspectUnpacked(store: ImageStore, pins: readonly string[]): ImageInspection {
  return {
    async look(image, verify) {
      if (FORMS.test(image)) {
        const path = image.replace(FORMS, '');
        const exists = await stat(path.replace(/:[^/:]*$/, '')).catch(() => null);
        return { image, status: exists ? 'present' : 'absent', path };
      }
      const digest = await store.digestOf(withTag(image));
      const found = digest === null ? null : await store.find(digest);
      if (!found || digest === null) return { image, status: 'absent' };
      const line = { image, digest, path: found.tree };
      if (!verify || (await store.isUnchanged(digest))) return { ...line, status: 'present' };
      const error = `${found.tree} differs from what was unpacked: remove it, and pull the image again`;
      return { ...line, status: 'changed', error };
    },
    async prune(needed) {
      const wanted = new Set([...needed].map(withTag));
      const all = await store.list();
      const images = all.filter(({ names }) => names.length > 0 && !names.some((name) => FORMS.test(name)));
      const removable = new Set(longestUnused(images, pins, Date.now()));
      const lines: ImageLine[] = [];
      const removed = new Set<string>();
      for (const one of images) {
        const { names, digest, bytes } = one;
        if (names.some((name) => wanted.has(name))) continue;
        const status = removable.has(one) ? 'removed' : 'kept';
        if (status === 'removed') {
          await store.drop(digest);
          removed.add(digest);
        }
        lines.push({ image: names[0] ?? digest, status, digest, bytes });
      }
      // Removes the trees of lower layers that no remaining image is based on.
      const used = treesInUse(all, removed);
      for (const { digest, shared } of all) if (shared && !used.has(digest)) await store.drop(digest);
      return lines;
    },
  };
}
