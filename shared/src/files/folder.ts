/**
 * Folders of ours in places where others can write too, such as /tmp: made without following a link of somebody else's, ours by
 * owner and mode, or refused. Whoever owns a folder above is trusted, as the one who gave that place; strangers are not.
 */
import type { Stats } from 'node:fs';
import { chmod, lstat, mkdir, readdir, readFile, readlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '../failures/errors.ts';

export type OwnFolder = {
  /** The setting that names it, for the message. */
  setting: string;
  /**
   * A place for everybody will do (root's or ours, with the sticky bit: nobody can move what is another's): what is made in it
   * has names that cannot be foreseen, and what others put there is told by its owner.
   */
  mayBeShared?: boolean;
  /** Nobody else may even look into it. */
  closed?: boolean;
};

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;
const WRITABLE_BY_ALL = 0o002;
const MOST_LINKS = 40;

/**
 * Makes the folder when it is missing (mode 0700; folders above it 0755), closes it to the others' writing when it is ours, and
 * answers its path without links. Throws UsageError `folder_not_ours` that names path, owner and remedy; system errors as they are.
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

/** What is found in a place for everybody counts only when this user made it. */
export const isOurs = (found: Pick<Stats, 'uid'>): boolean => found.uid === ourId();

const ourId = (): number => process.getuid?.() ?? 0;
/** Who could do to us what they like anyway: root, and we. */
export const isTrusted = ({ uid }: Pick<Stats, 'uid'>): boolean => uid === 0 || uid === ourId();

/** The path without links, its folders made; each step is looked at before the next one is taken. */
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
    // Where everybody may write, a name is whose owner it is.
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

/** What lies in a folder that everybody may write, without the sticky bit, is whose who moves it last: as root that would be the node. */
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
    // Somebody was first: whose it is, is looked at all the same.
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
