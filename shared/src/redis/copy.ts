/** Copies of a Redis that `swefarm redis` runs: made while it runs, written atomically, and restored on another node. */

import { copyFile, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import { replaceWith } from '../files/replace.ts';
import { poll } from '../waiting/poll.ts';
import type { LaunchedRedis } from './launch.ts';

// The bundle replaces this line: see slurm/bundle.mjs.
const require = createRequire(import.meta.url);

const SAVE_MS = 600_000;
const POLL_MS = 50;
/** The one before the newest stays, in case the newest was being read. */
const KEPT = 2;
/** What nobody may write between the last copy and the end is refused for so long at most. */
const PAUSE_MS = 60_000;

type CopyOptions = {
  /** Where the server keeps its data. */
  dir: string;
  /** Where copies go; of this leader's, named by epoch and number. */
  copies: string;
  epoch: number;
  number: number;
  /** Nothing may be written any more: this copy is the last one. */
  last?: boolean;
  signal?: AbortSignal;
};

/** Saves all data to one file among the copies. Throws UnusableError `redis_copy`. */
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
      `Redis could not be copied to ${options.copies}: ${errorMessage(error)}; is it writable, with room?`,
      { cause: error },
    );
  } finally {
    redis.disconnect();
  }
  for (const old of (await copiesIn(options.copies)).slice(0, -KEPT)) {
    await rm(join(options.copies, old), { force: true });
  }
  return name;
}

/** Redis writes aside and renames: a new file under the name is a whole one. */
async function save(redis: Redis, file: string, signal?: AbortSignal): Promise<void> {
  const before = await inode(file);
  await redis.call('BGSAVE', 'SCHEDULE');
  const isThere = async (): Promise<boolean> => {
    if ((await inode(file)) !== before) return true;
    const info = await redis.info('persistence');
    const idle = /rdb_bgsave_in_progress:0/.test(info);
    if (idle && /rdb_last_bgsave_status:err/.test(info))
      throw new Error('its snapshot failed; see redis.log');
    return false;
  };
  const saved = await poll(isThere, { pauseMs: POLL_MS, withinMs: SAVE_MS, signal });
  if (!saved) throw new Error(`no snapshot within ${SAVE_MS / 1000} s`);
}

async function inode(file: string): Promise<string | null> {
  const there = await stat(file, { bigint: true }).catch(() => null);
  return there && `${there.ino} ${there.mtimeNs}`;
}

const digits = (number: number): string => String(number).padStart(8, '0');

/** Names in order of epoch and number: a leader that lost its lead cannot overtake its successor. */
async function copiesIn(copies: string): Promise<string[]> {
  const names = await readdir(copies).catch(() => []);
  return names.filter((name) => /^copy-\d+-\d+\.rdb$/.test(name)).sort();
}

/** Path of the newest copy, or null. */
export async function newestCopy(copies: string): Promise<string | null> {
  const name = (await copiesIn(copies)).at(-1);
  return name === undefined ? null : join(copies, name);
}

/**
 * Lays a copy into an empty data folder such that a server with an append-only file starts from it: servers since 4
 * read a file of that name that begins with a snapshot, and since 7 take it over into their own form.
 */
export async function restoreCopy(copy: string, dir: string): Promise<void> {
  await copyFile(copy, join(dir, 'appendonly.aof'));
}
