/** Keys of policies with their origins, stored apart from runs, which contain only names. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { PolicyKey } from '../security/policykey.ts';
import { Secret } from '../security/secret.ts';
import type { Keys } from './keys.ts';

/** A secret named `RUN` or `RUN.…` is removed with the run. */
export type Secrets = {
  /** `ttl` in seconds. */
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
