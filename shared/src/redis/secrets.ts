/** Stores API keys of policies with their origins. The records of runs contain only the names of the keys. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { PolicyKey } from '../security/policykey.ts';
import { Secret } from '../security/secret.ts';
import type { Keys } from './keys.ts';

/** Stores API keys by name. A key with the name `RUN` or `RUN.…` is removed with the run. */
export type Secrets = {
  /** Stores a key for `ttl` seconds. */
  put(name: string, key: PolicyKey, ttl: number): Promise<void>;
  get(name: string): Promise<PolicyKey | null>;
  remove(name: string): Promise<void>;
};

const Stored = z.object({ secret: z.string(), origins: z.array(z.string()) });

export function createSecrets(redis: Redis, keys: Keys): Secrets {
  return {
    async put(name, { secret, origins }, ttl) {
      await redis.set(keys.secret(name), JSON.stringify({ secret: secret.reveal(), origins }), 'EX', ttl);
    },
    async get(name) {
      const text = await redis.get(keys.secret(name));
      if (text === null) return null;
      const { secret, origins } = Stored.parse(JSON.parse(text));
      return { secret: new Secret(secret), origins };
    },
    remove: async (name) => void (await redis.del(keys.secret(name))),
  };
}
