/** Stores API keys of policies with their origins. The records of runs contain only the names of the keys. */
import { z } from 'zod';
import type { PolicyKey } from '../security/policykey.ts';
import { Secret } from '../security/secret.ts';
import type { Store } from './part.ts';

const Stored = z.object({ secret: z.string(), origins: z.array(z.string()) });

/** Stores API keys by name. A key with the name `RUN` or `RUN.…` is removed with the run. */
export const createSecrets = ({ redis, keys }: Store) => ({
  /** Stores a key for `ttl` seconds. */
  async put(name: string, { secret, origins }: PolicyKey, ttl: number): Promise<void> {
    await redis.set(keys.secret(name), JSON.stringify({ secret: secret.reveal(), origins }), 'EX', ttl);
  },
  async get(name: string): Promise<PolicyKey | null> {
    const text = await redis.get(keys.secret(name));
    if (text === null) return null;
    const { secret, origins } = Stored.parse(JSON.parse(text));
    return { secret: new Secret(secret), origins };
  },
  remove: async (name: string): Promise<void> => void (await redis.del(keys.secret(name))),
});
