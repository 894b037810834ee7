/**
 * Finds the compiled commands of a checkout (`npm run compile`). A compiled command is used only while all its sources are unchanged. This
 * file is plain JavaScript, because older versions of Node cannot load TypeScript.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Folder of the compiled commands, relative to the root of a checkout. */
export const PIECES = 'node_modules/.cache/swefarm-pieces';

/** Oldest major version of Node that runs the commands: the target in compile/pieces.mjs. Older versions have no `using`. */
export const OLDEST_NODE = 24;

/** Returns whether the commands run in the Node of this process. */
export const isNewEnough = () => Number.parseInt(process.versions.node, 10) >= OLDEST_NODE;

/** Flag of Node that makes commands run from their sources, for profiles. */
const FROM_SOURCES = '--conditions=sources';

/** Returns the times and the size of a file, which change with the content; null: no such file. */
export function stampOf(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : [found.mtimeMs, found.ctimeMs, found.size];
}

/** Returns `worker-src-main` for `worker/src/main.ts`. */
export const nameOf = (source) => source.replace(/\.\w+$/, '').replaceAll('/', '-');

/** Returns the URL of the compiled `source` (path from the root); null if it is missing or outdated. */
export function compiledOf(source, root) {
  if (!isNewEnough()) return null;
  if (process.execArgv.includes(FROM_SOURCES)) return null;
  const base = join(root, PIECES, nameOf(source));
  try {
    const made = JSON.parse(readFileSync(`${base}.json`, 'utf8'));
    // Checkouts that share node_modules share this folder too, so the record names the checkout.
    if (made.root !== realpathSync(root)) return null;
    for (const [path, ...then] of made.files) {
      const now = stampOf(resolve(root, path));
      if (now === null || now[0] !== then[0] || now[1] !== then[1] || now[2] !== then[2]) return null;
    }
    return pathToFileURL(`${base}.mjs`).href;
  } catch {
    return null;
  }
}
