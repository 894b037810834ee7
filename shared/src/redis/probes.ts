/** Stores what gateways found out about the endpoints of open runs. */
import { z } from 'zod';
import type { Store } from './part.ts';

export const EndpointProbe = z.object({
  /** Distribution of the log-probabilities; null: not probed. */
  logprobs: z.enum(['raw', 'processed', 'unknown']).nullable(),
  /** Problems with remedies, one line each. */
  problems: z.array(z.string()),
});
export type EndpointProbe = z.infer<typeof EndpointProbe>;

export const createProbes = ({ redis, keys }: Store) => ({
  /** Returns true for one caller only, which must probe within `ttlMs`. */
  claim: async (name: string, ttlMs: number): Promise<boolean> =>
    (await redis.set(keys.probe(name), '', 'PX', ttlMs, 'NX')) === 'OK',
  store: async (name: string, probe: EndpointProbe, ttlMs: number): Promise<void> =>
    void (await redis.set(keys.probe(name), JSON.stringify(probe), 'PX', ttlMs)),
  async get(name: string): Promise<EndpointProbe | null> {
    const text = await redis.get(keys.probe(name));
    return text ? EndpointProbe.parse(JSON.parse(text)) : null;
  },
});
