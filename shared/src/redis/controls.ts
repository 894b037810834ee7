/**
 * Evidence of whether an instance's tests start, farm-wide: what evaluations of the untouched tree, of gold and of other rollouts
 * showed under the same conditions. A worker reads it when a patch's tests did not start or timed out. All of it may be lost.
 */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';

/** `untouched`, `gold`: a control evaluation, or one of these very patches. `sibling`: any other patch. */
export const ControlTree = z.enum(['untouched', 'gold', 'sibling']);
export type ControlTree = z.infer<typeof ControlTree>;

/** What one evaluation showed. */
export const ControlEvidence = z.object({
  /** The tests started, and their outcomes were read. */
  starts: z.boolean(),
  /** Seconds that the tests took; the time limit where they timed out. Null: they say nothing about other patches. */
  seconds: z.number().nullable(),
  /** Milliseconds since the epoch. */
  at: z.number(),
});
export type ControlEvidence = z.infer<typeof ControlEvidence>;

export type KnownControls = Partial<Record<ControlTree, ControlEvidence>>;

export type Controls = {
  /** What is known under these conditions. Tests that did not start count for an hour, others for a week. */
  read(conditions: string): Promise<KnownControls>;
  /** Replaces what was known of this tree. */
  note(conditions: string, tree: ControlTree, seen: Omit<ControlEvidence, 'at'>): Promise<void>;
};

const LIFE_MS = 7 * 24 * 3_600_000;
/** One control that failed by chance must not mark its instance as broken for long. */
const BROKEN_LIFE_MS = 3_600_000;

export function createControls(redis: Redis, keys: Keys, clock: Clock): Controls {
  const lives = ({ starts, at }: ControlEvidence): boolean =>
    clock.now() - at < (starts ? LIFE_MS : BROKEN_LIFE_MS);
  return {
    async read(conditions) {
      const fields = Object.entries(await redis.hgetall(keys.control(conditions)));
      const known = fields.flatMap(([name, text]): [ControlTree, ControlEvidence][] => {
        const tree = ControlTree.safeParse(name);
        const seen = ControlEvidence.safeParse(parsed(text));
        return tree.success && seen.success && lives(seen.data) ? [[tree.data, seen.data]] : [];
      });
      return Object.fromEntries(known);
    },
    async note(conditions, tree, seen) {
      const key = keys.control(conditions);
      const text = JSON.stringify({ ...seen, at: clock.now() } satisfies ControlEvidence);
      await redis.multi().hset(key, tree, text).pexpire(key, LIFE_MS).exec();
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
