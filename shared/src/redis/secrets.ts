/** Keys of policies. A run names its key; the value is stored apart, expires, and has beside it the origins it was given for. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { PolicyKey } from '../security/policykey.ts';
import { Secret } from '../security/secret.ts';
import type { Keys } from './keys.ts';

export type StoredKey = {
  readonly secret: Secret;
  /** Null: stored by a version that kept no origins. */
  readonly origins: readonly string[] | null;
};

/** A secret named after its run (`<run id>` or `<run id>.…`) is removed with the run. */
export type Secrets = {
  /** `ttl` in seconds. */
  put(name: string, key: PolicyKey, ttl: number): Promise<void>;
  get(name: string): Promise<StoredKey | null>;
  remove(name: string): Promise<void>;
};

const Origins = z.array(z.string());

export function createSecrets(redis: Redis, keys: Keys): Secrets {
  return {
    // Two strings: workers of the previous version read the key where it always was.
    async put(name, { secret, origins }, ttl) {
      await redis
        .multi()
        .set(keys.secretOrigins(name), JSON.stringify(origins), 'EX', ttl)
        .set(keys.secret(name), secret.reveal(), 'EX', ttl)
        .exec();
    },
    async get(name) {
      const [value, origins] = await redis.mget(keys.secret(name), keys.secretOrigins(name));
      if (value == null) return null;
      return {
        secret: new Secret(value),
        origins: origins == null ? null : Origins.parse(JSON.parse(origins)),
      };
    },
    remove: async (name) => void (await redis.del(keys.secret(name), keys.secretOrigins(name))),
  };
}
