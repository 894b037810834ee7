/**
 * What a checkout compiled of its commands (`npm run compile`): pieces in place of a thousand files. They are used only while every
 * file that they were made of is as it was then, so a changed source always wins. Plain JavaScript, for older Nodes read it.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Folder of the pieces, below the root of a checkout. */
export const PIECES = 'node_modules/.cache/swefarm-pieces';

/** What the target of the compiler asks for (compile/pieces.mjs). */
const OLDEST_NODE = 24;

/** Flag of Node by which a command runs from its sources, for profiles and traces that name them. */
const FROM_SOURCES = '--conditions=sources';

/** What changes whenever a file's content can have changed: the times of its content and of its entry, and its size. */
export function stampOf(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : [found.mtimeMs, found.ctimeMs, found.size];
}

/** `worker/src/main.ts` becomes `worker-src-main`: the piece, and the record of what it was made of. */
export const nameOf = (source) => source.replace(/\.\w+$/, '').replaceAll('/', '-');

/** URL of what `source` (from the root) became; null when nothing was compiled, or a file that it was made of changed since. */
export function compiledOf(source, root) {
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) return null;
  if (process.execArgv.includes(FROM_SOURCES)) return null;
  const base = join(root, PIECES, nameOf(source));
  try {
    const made = JSON.parse(readFileSync(`${base}.json`, 'utf8'));
    // Another checkout may share our node_modules, and this file.
    if (made.root !== realpathSync(root)) return null;
    for (const [path, ...then] of made.files) {
      const now = stampOf(resolve(root, path));
      if (now === null || now[0] !== then[0] || now[1] !== then[1] || now[2] !== then[2]) return null;
    }
    return pathToFileURL(`${base}.mjs`).href;
  } catch {
    // Never compiled, half removed, or not ours to read: the sources are there.
    return null;
  }
}
