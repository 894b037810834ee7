import type { Store } from './part.ts';

/** Drained nodes: their workers claim nothing. */
export const createNodes = ({ redis, keys, clock }: Store) => ({
  drain: async (node: string): Promise<void> =>
    void (await redis.hsetnx(keys.drained, node, await clock.ask())),
  undrain: async (node: string): Promise<void> => void (await redis.hdel(keys.drained, node)),
  /** Returns the drained nodes, each with the time of its drain in milliseconds since the epoch. */
  drained: async (): Promise<Map<string, number>> =>
    new Map(Object.entries(await redis.hgetall(keys.drained)).map(([node, at]) => [node, Number(at)])),
});
