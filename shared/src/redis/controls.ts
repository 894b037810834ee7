/**
 * Stores whether the tests of an instance start. The evidence comes from evaluations of the unchanged tree, of gold and of other rollouts
 * under equal conditions. Workers read the evidence if the tests of a patch did not start, were unreadable or timed out. Redis may lose it.
 */
import { z } from 'zod';
import { tryParseJson } from '../records/parse.ts';
import type { Store } from './part.ts';

/** The evaluated tree: the unchanged tree, the tree with the gold patch, or (`sibling`) the tree with any other patch. */
export const ControlTree = z.enum(['untouched', 'gold', 'sibling']);
export type ControlTree = z.infer<typeof ControlTree>;

export const ControlEvidence = z.object({
  /** Whether the tests started and had readable outcomes. */
  starts: z.boolean(),
  /** Duration of the tests in seconds; after a timeout with gold the time limit; null: not comparable with other patches. */
  seconds: z.number().nullable(),
  /** Time of the evaluation in milliseconds since the epoch. */
  at: z.number(),
});
export type ControlEvidence = z.infer<typeof ControlEvidence>;

export type KnownControls = Partial<Record<ControlTree, ControlEvidence>>;

const LIFE_MS = 7 * 24 * 3_600_000;
/** Shorter than LIFE_MS, because an evaluation can fail by chance. */
const BROKEN_LIFE_MS = 3_600_000;

export type Controls = ReturnType<typeof createControls>;

export function createControls({ redis, keys, clock }: Store) {
  const lives = ({ starts, at }: ControlEvidence): boolean =>
    clock.now() - at < (starts ? LIFE_MS : BROKEN_LIFE_MS);
  return {
    /** Returns the evidence under these conditions. The evidence that tests did not start is valid for an hour, other evidence for a week. */
    async read(conditions: string): Promise<KnownControls> {
      const fields = Object.entries(await redis.hgetall(keys.control(conditions)));
      const known = fields.flatMap(([name, text]): [ControlTree, ControlEvidence][] => {
        const tree = ControlTree.safeParse(name);
        const seen = ControlEvidence.safeParse(tryParseJson(text));
        return tree.success && seen.success && lives(seen.data) ? [[tree.data, seen.data]] : [];
      });
      return Object.fromEntries(known);
    },
    /** Replaces the evidence on a tree. */
    async note(conditions: string, tree: ControlTree, seen: Omit<ControlEvidence, 'at'>): Promise<void> {
      const key = keys.control(conditions);
      const text = JSON.stringify({ ...seen, at: clock.now() } satisfies ControlEvidence);
      await redis.multi().hset(key, tree, text).pexpire(key, LIFE_MS).exec();
    },
  };
}
