/** The builder's cache: an entry is written to a temporary path and renamed when complete, so a killed build leaves no partial entry. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSingleFlight } from '@swefarm/shared';

/** Part of every key: raise it when the builder produces something different from the same recipe. */
const BUILDER = 1;

/** Hashes the parts to twelve hexadecimal digits. */
export const cacheKey = (...parts: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([BUILDER, ...parts]))
    .digest('hex')
    .slice(0, 12);

const underWay = createSingleFlight<string>();

/**
 * Returns `path`, after `make` has created it if it was missing. One process makes it once; two concurrent builders both
 * make it, and the first to finish wins. `make` gets a path beside the final one that does not exist yet.
 */
export const cached = (path: string, make: (draft: string) => Promise<void>): Promise<string> =>
  underWay.run(path, () => makeOnce(path, make));

async function makeOnce(path: string, make: (draft: string) => Promise<void>): Promise<string> {
  if (existsSync(path)) return path;
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.draft-${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  try {
    await make(draft);
    await rename(draft, path).catch(async (cause: unknown) => {
      if (!existsSync(path)) throw cause;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return path;
}
