/** Stores what gateways found out about the endpoints of open runs. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Keys } from './keys.ts';

export const EndpointProbe = z.object({
  /** Distribution of the log-probabilities; null: unknown. */
  logprobs: z.enum(['raw', 'processed', 'unknown']).nullable(),
  /** Problems with remedies, one line each. */
  problems: z.array(z.string()),
});
export type EndpointProbe = z.infer<typeof EndpointProbe>;

export type Probes = {
  /** Returns true for one caller only, which must probe within `ttlMs`. */
  claim(name: string, ttlMs: number): Promise<boolean>;
  store(name: string, probe: EndpointProbe, ttlMs: number): Promise<void>;
  get(name: string): Promise<EndpointProbe | null>;
};

export function createProbes(redis: Redis, keys: Keys): Probes {
  return {
    claim: async (name, ttlMs) => (await redis.set(keys.probe(name), '', 'PX', ttlMs, 'NX')) === 'OK',
    store: async (name, probe, ttlMs) =>
      void (await redis.set(keys.probe(name), JSON.stringify(probe), 'PX', ttlMs)),
    async get(name) {
      const text = await redis.get(keys.probe(name));
      return text ? EndpointProbe.parse(JSON.parse(text)) : null;
    },
  };
}
