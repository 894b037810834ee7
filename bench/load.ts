/** The work of Redis between two samples of its own statistics (INFO), in total and per unit. */
import type { Farm } from '@swefarm/shared';
import { rounded } from './statistics.ts';

/** CPU covers all threads of the server; commands are counted by Redis and include those that scripts call. */
export type Load = { redis_us: number; commands: number; in_bytes: number; out_bytes: number };

/** One sample of the statistics. */
export type Books = Load & {
  at_ms: number;
  memory_bytes: number;
  peak_bytes: number;
  connections: number;
  /** Calls of XADD, by which live turns and results arrive. */
  xadds: number;
};

/** Takes a sample of a farm's Redis. */
export function openBooks(farm: Farm): () => Promise<Books> {
  // BullMQ's connection options are in fact a client here.
  const redis = farm.bullConnection() as unknown as { info(section: string): Promise<string> };
  return async () => {
    const text = await redis.info('all');
    const field = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1]);
    return {
      at_ms: performance.now(),
      redis_us: 1e6 * (field('used_cpu_user') + field('used_cpu_sys')),
      commands: field('total_commands_processed'),
      in_bytes: field('total_net_input_bytes'),
      out_bytes: field('total_net_output_bytes'),
      memory_bytes: field('used_memory'),
      peak_bytes: field('used_memory_peak'),
      connections: field('connected_clients'),
      xadds: Number(/^cmdstat_xadd:calls=(\d+)/m.exec(text)?.[1] ?? 0),
    };
  };
}

const KEYS = ['redis_us', 'commands', 'in_bytes', 'out_bytes'] as const;

const each = (of: (key: (typeof KEYS)[number]) => number): Load => ({
  redis_us: of('redis_us'),
  commands: of('commands'),
  in_bytes: of('in_bytes'),
  out_bytes: of('out_bytes'),
});

export const secondsBetween = (from: Books, to: Books): number => (to.at_ms - from.at_ms) / 1000;

/** Subtracts `besides`, the load that would have occurred in that time anyway. */
export function loadBetween(from: Books, to: Books, count: number, besides: Load | null = null): Load {
  return each((key) => {
    const done = to[key] - from[key] - (besides?.[key] ?? 0);
    return rounded(done / count, 2);
  });
}

export const times = (load: Load, factor: number): Load => each((key) => load[key] * factor);

export const plus = (...loads: readonly Load[]): Load =>
  each((key) =>
    rounded(
      loads.reduce((all, one) => all + one[key], 0),
      2,
    ),
  );
