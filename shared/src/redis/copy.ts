/** Makes and restores copies of the Redis that `swefarm redis` runs. */
import { copyFile, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import { replaceWith } from '../files/replace.ts';
import { poll } from '../waiting/poll.ts';
import type { LaunchedRedis } from './launch.ts';

// The compiler (compile/pieces.mjs) removes exactly this line, so that esbuild includes the library in the bundle.
const require = createRequire(import.meta.url);

const SAVE_MS = 600_000;
const POLL_MS = 50;
/** Number of copies in the folder; a process may still read the second newest. */
const COPIES = 2;
/** Maximum time in ms for which writes wait after the start of the last copy. The copy takes less time, and then the server ends. */
const PAUSE_MS = 2 * SAVE_MS;

type CopyOptions = {
  /** Data folder of the server. */
  dir: string;
  /** Folder of copies; their names contain epoch and number. */
  copies: string;
  epoch: number;
  number: number;
  /** Whether this is the last copy. Redis delays writes from the start of the last copy. */
  last?: boolean;
  signal?: AbortSignal;
};

/** Saves all data to a new copy and returns its name. Throws UnusableError `redis_copy`. */
export async function saveCopy(server: LaunchedRedis, options: CopyOptions): Promise<string> {
  const { Redis: Client } = require('ioredis') as typeof import('ioredis');
  const redis = new Client(server.url.reveal(), { maxRetriesPerRequest: 1, retryStrategy: () => null });
  redis.on('error', () => undefined);
  const name = `copy-${digits(options.epoch)}-${digits(options.number)}.rdb`;
  try {
    if (options.last) await redis.call('CLIENT', 'PAUSE', String(PAUSE_MS), 'WRITE');
    await save(redis, join(options.dir, 'dump.rdb'), options.signal);
    await mkdir(options.copies, { recursive: true, mode: 0o700 });
    await replaceWith(join(options.copies, name), (aside) => copyFile(join(options.dir, 'dump.rdb'), aside));
  } catch (error) {
    options.signal?.throwIfAborted();
    throw new UnusableError(
      'redis_copy',
      `cannot copy Redis to ${options.copies}: ${errorMessage(error)}; check permissions and free space`,
      { cause: error },
    );
  } finally {
    redis.disconnect();
  }
  for (const old of (await copiesIn(options.copies)).slice(0, -COPIES)) {
    await rm(join(options.copies, old), { force: true });
  }
  return name;
}

/** Saves a snapshot and waits for it. Redis replaces the file atomically, so a new inode is a complete snapshot. */
async function save(redis: Redis, file: string, signal?: AbortSignal): Promise<void> {
  const before = await inode(file);
  await redis.call('BGSAVE', 'SCHEDULE');
  const isSaved = async (): Promise<boolean> => {
    if ((await inode(file)) !== before) return true;
    const info = await redis.info('persistence');
    const idle = /rdb_bgsave_in_progress:0/.test(info);
    if (idle && /rdb_last_bgsave_status:err/.test(info))
      throw new Error('its snapshot failed; see redis.log');
    return false;
  };
  const saved = await poll(isSaved, { pauseMs: POLL_MS, withinMs: SAVE_MS, signal });
  if (!saved) throw new Error(`no snapshot within ${SAVE_MS / 1000} s`);
}

async function inode(file: string): Promise<string | null> {
  const found = await stat(file, { bigint: true }).catch(() => null);
  return found && `${found.ino} ${found.mtimeNs}`;
}

const digits = (number: number): string => String(number).padStart(8, '0');

/** Returns the names of the copies, oldest first: copies of an earlier leader have a lower epoch. */
async function copiesIn(copies: string): Promise<string[]> {
  const names = await readdir(copies).catch(() => []);
  return names.filter((name) => /^copy-\d+-\d+\.rdb$/.test(name)).sort();
}

/** Returns the path of the newest copy; null: none. */
export async function newestCopy(copies: string): Promise<string | null> {
  const name = (await copiesIn(copies)).at(-1);
  return name === undefined ? null : join(copies, name);
}

/** Restores a copy into an empty data folder. Redis reads an append-only file that begins with a snapshot. */
export async function restoreCopy(copy: string, dir: string): Promise<void> {
  await copyFile(copy, join(dir, 'appendonly.aof'));
}
