/**
 * Makes or checks the farm's folders in places where other users can write, such as /tmp. A folder is refused unless its owner and mode
 * are ours and its path follows no other user's link. Owners of folders above it are trusted, because this place was configured.
 */
import type { Stats } from 'node:fs';
import { chmod, lstat, mkdir, readdir, readFile, readlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '../failures/errors.ts';

export type OwnFolder = {
  /** The setting that names the folder, for the message. */
  setting: string;
  /**
   * Also accepts a shared place (root's or ours, with the sticky bit, so that users cannot move each other's files): the farm's names in it
   * are unpredictable, and the owner of an entry shows whether another user put it there.
   */
  mayBeShared?: boolean;
  /** Others may not even read the folder. */
  closed?: boolean;
};

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;
const WRITABLE_BY_ALL = 0o002;
const MOST_LINKS = 40;

/**
 * Makes the folder when it is missing (mode 0700; folders above it 0755), removes others' write permission when it is ours, and
 * returns its path without links. Throws UsageError `folder_not_ours` that names path, owner and remedy; system errors as they are.
 */
export async function ownFolder(path: string, options: OwnFolder): Promise<string> {
  const real = await walk(resolve(path), options);
  const found = await lstat(real);
  const refuse = (why: string): never => {
    throw notOurs(real, why, options);
  };
  const writable = (found.mode & WRITABLE_BY_OTHERS) !== 0;
  if (options.mayBeShared && isTrusted(found) && writable && found.mode & STICKY) return real;
  if (found.uid !== ourId()) refuse(`belongs to ${await nameOf(found.uid)}`);
  if (writable) {
    if (found.mode & STICKY) refuse('is a place for everybody');
    for (const name of await readdir(real)) {
      const entry = await lstat(join(real, name)).catch(() => null);
      if (entry && entry.uid !== found.uid)
        refuse(`may be written by others, and "${name}" in it belongs to ${await nameOf(entry.uid)}`);
    }
  }
  const mode = found.mode & (options.closed ? 0o700 : 0o7777 & ~WRITABLE_BY_OTHERS);
  if (mode !== (found.mode & 0o7777)) await chmod(real, mode);
  return real;
}

/** An entry of a shared place counts only when this user made it. */
export const isOurs = (found: Pick<Stats, 'uid'>): boolean => found.uid === ourId();

const ourId = (): number => process.getuid?.() ?? 0;
/** Users who have full power over this process anyway: root and this user. */
export const isTrusted = ({ uid }: Pick<Stats, 'uid'>): boolean => uid === 0 || uid === ourId();

/** Returns the path without links and makes its folders; checks each component before it takes the next one. */
async function walk(path: string, options: OwnFolder): Promise<string> {
  let at = '/';
  let above = await lstat('/');
  let links = 0;
  const ahead = path.split('/').filter((part) => part !== '');
  for (let part = ahead.shift(); part !== undefined; part = ahead.shift()) {
    if (part === '.') continue;
    if (part === '..') {
      at = dirname(at);
      above = await lstat(at);
      continue;
    }
    const next = join(at, part);
    requireSteady(at, above, options);
    const found = await foundOrMade(next, ahead.length === 0);
    // Where everybody may write, an entry belongs to the user who made it, and must be trusted itself.
    if (above.mode & WRITABLE_BY_ALL && !isTrusted(found))
      throw notOurs(next, `belongs to ${await nameOf(found.uid)}`, options);
    if (found.isSymbolicLink()) {
      if (!isTrusted(found))
        throw notOurs(next, `is a link that belongs to ${await nameOf(found.uid)}`, options);
      if (++links > MOST_LINKS) throw notOurs(next, 'is a link without an end', options);
      const target = await readlink(next);
      ahead.unshift(...target.split('/').filter((one) => one !== ''));
      if (target.startsWith('/')) at = '/';
      above = await lstat(at);
      continue;
    }
    if (!found.isDirectory()) throw notOurs(next, 'is no folder', options);
    at = next;
    above = found;
  }
  return at;
}

/** In a folder that everybody may write, without the sticky bit, anyone can swap an entry: for root this would give away the node. */
function requireSteady(path: string, { mode }: Stats, options: OwnFolder): void {
  if (ourId() !== 0 || (mode & WRITABLE_BY_ALL) === 0 || mode & STICKY) return;
  throw new UsageError(
    `${options.setting}: everybody may rename what is in ${path}: chmod +t ${path}, or set ${options.setting} to another folder`,
    { code: 'folder_not_ours' },
  );
}

async function foundOrMade(path: string, last: boolean): Promise<Stats> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return null;
  });
  if (found) return found;
  await mkdir(path, { mode: last ? 0o700 : 0o755 }).catch((error: NodeJS.ErrnoException) => {
    // Another process made it first; its owner is checked all the same.
    if (error.code !== 'EEXIST') throw error;
  });
  return await lstat(path);
}

function notOurs(path: string, why: string, { setting }: OwnFolder): UsageError {
  return new UsageError(
    `${setting}: ${path} ${why}, and must belong to uid ${ourId()} alone: have it removed, or set ${setting} to a folder of your own`,
    { code: 'folder_not_ours' },
  );
}

async function nameOf(uid: number): Promise<string> {
  const accounts = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const name = accounts.split('\n').find((line) => line.split(':')[2] === String(uid));
  return name ? `uid ${uid} (${name.split(':', 1)[0]})` : `uid ${uid}`;
}
