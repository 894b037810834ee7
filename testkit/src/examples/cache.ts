/** The builder's cache: every entry is made once, apart, and moved into place whole, so that a killed build leaves none half made. */

import { createHash } from 'node:crypto';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSingleFlight } from '@swefarm/shared';

/** Goes into every key: raise it when the builder itself makes something else from the same recipe. */
const BUILDER = 1;

/** Twelve hexadecimal digits that stand for the parts. */
export const cacheKey = (...parts: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([BUILDER, ...parts]))
    .digest('hex')
    .slice(0, 12);

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const underWay = createSingleFlight<string>();

/**
 * `path`, after `make` has filled it if it was not there. Within a process it is made once; two builders at once both
 * make it, and the first to finish wins. `make` gets a path beside the final one, which does not exist yet.
 */
export const cached = (path: string, make: (draft: string) => Promise<void>): Promise<string> =>
  underWay.run(path, () => makeOnce(path, make));

async function makeOnce(path: string, make: (draft: string) => Promise<void>): Promise<string> {
  if (await exists(path)) return path;
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.draft-${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  try {
    await make(draft);
    await rename(draft, path).catch(async (cause: unknown) => {
      if (!(await exists(path))) throw cause;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return path;
}
