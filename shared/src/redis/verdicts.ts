/**
 * Stores which rollout of a run was graded with a patch, so that rollouts with the same patch take its verdict instead of another
 * evaluation. Redis may lose it: the patch is then evaluated again.
 */
import { z } from 'zod';
import { tryParseJson } from '../records/parse.ts';
import type { Store } from './part.ts';

export const KnownVerdict = z.object({
  /** Rollout that was graded, and its artifact with the report; null: each rollout with this patch is graded by itself. */
  by: z.object({ rollout_id: z.string(), artifact: z.string(), resolved: z.boolean().nullable() }).nullable(),
});
export type KnownVerdict = z.infer<typeof KnownVerdict>;

export function createVerdicts({ redis, keys }: Store) {
  const read = async (runId: string, patch: string): Promise<KnownVerdict | null> => {
    const text = await redis.hget(keys.run(runId).verdicts, patch);
    return KnownVerdict.safeParse(tryParseJson(text ?? '')).data ?? null;
  };
  return {
    /** @param patch hash of patch and conditions of the evaluation */
    read,
    /** Stores a verdict. If another evaluation of the patch had another verdict, no rollout takes either. */
    async note(
      { run_id, ttl }: { run_id: string; ttl: number },
      patch: string,
      by: KnownVerdict['by'],
    ): Promise<void> {
      const before = await read(run_id, patch);
      const differs = before !== null && before.by?.resolved !== by?.resolved;
      const known: KnownVerdict = { by: differs ? null : by };
      const key = keys.run(run_id).verdicts;
      await redis.multi().hset(key, patch, JSON.stringify(known)).expire(key, ttl).exec();
    },
  };
}
