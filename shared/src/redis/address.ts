/** The address file: tells on a shared file system where the farm's Redis is now. Its leader writes it, all others read it. */

import { readFile, rm } from 'node:fs/promises';
import { z } from 'zod';
import { errorMessage, UnusableError } from '../failures/errors.ts';
import { replaceFile } from '../files/replace.ts';

export const RedisAddress = z.object({
  format: z.literal('swefarm-redis-1'),
  host: z.string().min(1),
  port: z.number().int().min(1).max(65_535),
  username: z.string(),
  password: z.string(),
  /** Each new leader has a higher epoch; the highest one is valid. */
  epoch: z.number().int(),
  /** For people: where it runs, and in which job. */
  node: z.string(),
  job: z.string().nullable(),
});
export type RedisAddress = z.infer<typeof RedisAddress>;

const SCHEME = 'file:';

/** The path in `file:/path` or `file:///path`; null for any other URL. */
export function addressPath(url: string): string | null {
  return url.startsWith(SCHEME) ? url.slice(SCHEME.length).replace(/^\/\/(?=\/)/, '') : null;
}

/** Throws UnusableError `redis_unreachable` when there is no leader, or when the file holds no address. */
export async function readAddress(path: string): Promise<RedisAddress> {
  try {
    return RedisAddress.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UnusableError(
      'redis_unreachable',
      missing
        ? `no Redis leads this farm: ${path} does not exist; start one: swefarm redis, or sbatch slurm/workers.sh`
        : `${path} is no address of a Redis (${errorMessage(error)}); swefarm redis writes it anew`,
      { cause: error },
    );
  }
}

/** Replaces the file atomically, readable by its owner only: it holds the password. */
export async function writeAddress(path: string, address: RedisAddress): Promise<void> {
  await replaceFile(path, `${JSON.stringify(address, null, 1)}\n`, { mode: 0o600 });
}

/** Removes the file if it is still the one of this epoch. */
export async function removeAddress(path: string, epoch: number): Promise<void> {
  const there = await readAddress(path).catch(() => null);
  if (there?.epoch === epoch) await rm(path, { force: true });
}
