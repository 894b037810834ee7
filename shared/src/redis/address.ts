/** The address file of the farm's Redis, on a shared file system. The process that runs Redis (the leader) writes it; others read it. */
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
  /** Each new leader has a higher epoch. */
  epoch: z.number().int(),
  /** Node and job of the server, for messages. */
  node: z.string(),
  job: z.string().nullable(),
});
export type RedisAddress = z.infer<typeof RedisAddress>;

const SCHEME = 'file:';

/** Returns the path of `file:/path` or `file:///path`; null for other URLs. */
export function addressPath(url: string): string | null {
  return url.startsWith(SCHEME) ? url.slice(SCHEME.length).replace(/^\/\/(?=\/)/, '') : null;
}

/** Reads the file. Throws UnusableError `redis_unreachable` if the file is missing, unreadable, or contains no address. */
export async function readAddress(path: string): Promise<RedisAddress> {
  try {
    return RedisAddress.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UnusableError(
      'redis_unreachable',
      missing
        ? `no Redis runs for this farm: ${path} does not exist; start one: swefarm redis, or sbatch slurm/workers.sh`
        : `${path} is not an address of a Redis (${errorMessage(error)}); swefarm redis rewrites it`,
      { cause: error },
    );
  }
}

/** Replaces the file. Only its owner can read the file, because it contains the password. */
export async function writeAddress(path: string, address: RedisAddress): Promise<void> {
  await replaceFile(path, `${JSON.stringify(address, null, 1)}\n`, { mode: 0o600 });
}

/** Removes the file if its content has this epoch. */
export async function removeAddress(path: string, epoch: number): Promise<void> {
  const address = await readAddress(path).catch(() => null);
  if (address?.epoch === epoch) await rm(path, { force: true });
}
