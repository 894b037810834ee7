/** Drained nodes: their workers claim nothing. */
import type { Redis } from 'ioredis';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';

export type Nodes = {
  drain(node: string): Promise<void>;
  undrain(node: string): Promise<void>;
  /** Returns the drained nodes, each with the time of its drain in milliseconds since the epoch. */
  drained(): Promise<Map<string, number>>;
};

export function createNodes(redis: Redis, keys: Keys, clock: Clock): Nodes {
  return {
    drain: async (node) => void (await redis.hsetnx(keys.drained, node, await clock.ask())),
    undrain: async (node) => void (await redis.hdel(keys.drained, node)),
    drained: async () =>
      new Map(Object.entries(await redis.hgetall(keys.drained)).map(([node, at]) => [node, Number(at)])),
  };
}
