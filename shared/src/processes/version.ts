/** The version of this software, for the registry, results and artifacts. */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const COMMIT_LENGTH = 12;

let known: string | null = null;

/** Returns `0.1.0+3dcab5098b53`: the version of package.json, and the commit or bundle if known. */
export function softwareVersion(): string {
  known ??= versionAt(ROOT);
  return known;
}

/** Returns the version of the checkout or bundle at `root`. Never throws. */
export function versionAt(root: string): string {
  const own = read(join(root, 'shared/package.json')) ?? read(join(root, 'package.json'));
  const version = own === null ? null : versionIn(own);
  const build = read(join(root, 'bundle-id')) ?? commitOf(join(root, '.git'));
  return `${version ?? 'unknown'}${build === null ? '' : `+${build.slice(0, COMMIT_LENGTH)}`}`;
}

function versionIn(text: string): string | null {
  try {
    const { version } = JSON.parse(text) as { version?: unknown };
    return typeof version === 'string' ? version : null;
  } catch {
    return null;
  }
}

/** Reads the checked-out commit without git. The `.git` of a worktree is a file with the path of its folder. */
function commitOf(git: string): string | null {
  const pointed = /^gitdir: (.+)/.exec(read(git) ?? '')?.[1];
  const own = pointed === undefined ? git : resolve(dirname(git), pointed);
  const head = read(join(own, 'HEAD'));
  const ref = /^ref: (.+)/.exec(head ?? '')?.[1];
  if (ref === undefined) return commitIn(head);
  const common = read(join(own, 'commondir'));
  const shared = common === null ? own : resolve(own, common);
  const packed = (read(join(shared, 'packed-refs')) ?? '')
    .split('\n')
    .find((line) => line.endsWith(` ${ref}`));
  return commitIn(read(join(shared, ref))) ?? commitIn(packed ?? null);
}

const commitIn = (text: string | null): string | null => /^[0-9a-f]{40,64}\b/.exec(text ?? '')?.[0] ?? null;

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}
