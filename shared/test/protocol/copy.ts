/** Copies and restores the keys of one run, while its workers continue. */
import type { Redis } from 'ioredis';
import { allRunKeys, type Keys } from '../../src/redis/keys.ts';

export type KeyCopy = ReadonlyMap<string, { value: Buffer; lifeMs: number }>;

async function namesOf(redis: Redis, keys: Keys, runId: string): Promise<string[]> {
  const artifacts = await redis.smembers(keys.run(runId).artifacts);
  const books = [keys.artifactBytes, keys.artifactExpiry, keys.artifactUsed];
  return [...allRunKeys(keys, runId), ...artifacts.map(keys.artifact), ...books];
}

export async function copyRun(redis: Redis, keys: Keys, runId: string): Promise<KeyCopy> {
  const names = await namesOf(redis, keys, runId);
  const all = await Promise.all(
    names.map(async (name) => ({
      name,
      value: await redis.dumpBuffer(name),
      lifeMs: await redis.pttl(name),
    })),
  );
  return new Map(
    all.flatMap(({ name, value, lifeMs }) => (value ? [[name, { value, lifeMs }] as const] : [])),
  );
}

export async function restoreRun(redis: Redis, keys: Keys, runId: string, copy: KeyCopy): Promise<void> {
  await redis.del(await namesOf(redis, keys, runId));
  await Promise.all(
    [...copy].map(([name, { value, lifeMs }]) => redis.restore(name, Math.max(0, lifeMs), value, 'REPLACE')),
  );
}
