/**
 * Creates or checks the farm's folders below directories that other users can write, such as /tmp. A folder must belong to this user,
 * and its path must not follow another user's link. Owners of configured parent directories are trusted.
 */
import type { Stats } from 'node:fs';
import { chmod, lstat, mkdir, readdir, readFile, readlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '../failures/errors.ts';

export type OwnFolder = {
  /** The setting that names the folder, for error messages. */
  setting: string;
  /** Whether to accept a directory of root or this user with the sticky bit. Callers must check the owners of entries. */
  mayBeShared?: boolean;
  /** Whether to remove all permissions of other users. */
  closed?: boolean;
};

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;
const WRITABLE_BY_ALL = 0o002;
const MOST_LINKS = 40;

/**
 * Creates a missing folder (mode 0700; parents 0755), removes the write permission of other users, and returns the path without links.
 *
 * @throws UsageError `folder_not_ours`, system errors
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
    if (found.mode & STICKY) refuse('is a shared directory');
    for (const name of await readdir(real)) {
      const entry = await lstat(join(real, name)).catch(() => null);
      if (entry && entry.uid !== found.uid)
        refuse(`is writable by other users, and "${name}" in it belongs to ${await nameOf(entry.uid)}`);
    }
  }
  const mode = found.mode & (options.closed ? 0o700 : 0o7777 & ~WRITABLE_BY_OTHERS);
  if (mode !== (found.mode & 0o7777)) await chmod(real, mode);
  return real;
}

/** Returns whether this user owns the file. */
export const isOurs = (found: Pick<Stats, 'uid'>): boolean => found.uid === ourId();

const ourId = (): number => process.getuid?.() ?? 0;
/** Returns whether root or this user owns the file. */
export const isTrusted = ({ uid }: Pick<Stats, 'uid'>): boolean => uid === 0 || uid === ourId();

/** Returns the path without links and creates its folders; checks each component before the next one. */
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
    // In a directory that everybody can write, the owner of the entry must be trusted.
    if (above.mode & WRITABLE_BY_ALL && !isTrusted(found))
      throw notOurs(next, `belongs to ${await nameOf(found.uid)}`, options);
    if (found.isSymbolicLink()) {
      if (!isTrusted(found))
        throw notOurs(next, `is a link that belongs to ${await nameOf(found.uid)}`, options);
      if (++links > MOST_LINKS) throw notOurs(next, 'is a circular link', options);
      const target = await readlink(next);
      ahead.unshift(...target.split('/').filter((one) => one !== ''));
      if (target.startsWith('/')) at = '/';
      above = await lstat(at);
      continue;
    }
    if (!found.isDirectory()) throw notOurs(next, 'is not a folder', options);
    at = next;
    above = found;
  }
  return at;
}

/** Refuses, for root, a world-writable directory without the sticky bit: any user can replace its entries. */
function requireSteady(path: string, { mode }: Stats, options: OwnFolder): void {
  if (ourId() !== 0 || (mode & WRITABLE_BY_ALL) === 0 || mode & STICKY) return;
  throw new UsageError(
    `${options.setting}: every user can rename entries of ${path}: chmod +t ${path}, or set ${options.setting} to another folder`,
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
    // If another process created the folder, the caller checks the owner.
    if (error.code !== 'EEXIST') throw error;
  });
  return await lstat(path);
}

function notOurs(path: string, why: string, { setting }: OwnFolder): UsageError {
  return new UsageError(
    `${setting}: ${path} ${why}, but must belong to uid ${ourId()} only: have it removed, or set ${setting} to a folder of your own`,
    { code: 'folder_not_ours' },
  );
}

async function nameOf(uid: number): Promise<string> {
  const accounts = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const name = accounts.split('\n').find((line) => line.split(':')[2] === String(uid));
  return name ? `uid ${uid} (${name.split(':', 1)[0]})` : `uid ${uid}`;
}
