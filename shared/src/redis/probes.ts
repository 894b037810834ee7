/** What gateways found when they probed the endpoints of open runs: each is probed by one of them. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Keys } from './keys.ts';

export const EndpointProbe = z.object({
  /** Of which distribution the log-probabilities are; null: the probe did not come so far. */
  logprobs: z.enum(['raw', 'processed', 'unknown']).nullable(),
  /** What is wrong, with its remedy: one line each. */
  problems: z.array(z.string()),
});
export type EndpointProbe = z.infer<typeof EndpointProbe>;

export type Probes = {
  /** True for the one that is to probe: nobody else does for `ttlMs`, or until the finding expires. */
  claim(name: string, ttlMs: number): Promise<boolean>;
  store(name: string, probe: EndpointProbe, ttlMs: number): Promise<void>;
  /** Null while nothing is found. */
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
