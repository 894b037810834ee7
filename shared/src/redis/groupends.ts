/** Reads ended groups: each group once, in order of their ends, with the results of its rollouts. */
import { z } from 'zod';
import { rolloutId } from '../records/ids.ts';
import { readRecord } from '../records/parse.ts';
import type { Store } from './part.ts';
import { readPatiently } from './patientread.ts';
import type { ResultBatch, Results } from './results.ts';

/**
 * An ended group: all its rollouts have a result. `end`: mixed (rewards differ), uniform, short (too few usable results), or cancelled.
 * `selected`: whether a run with `until` counts the group; absent in other runs.
 */
export const GroupEnd = z.object({
  instance_id: z.string(),
  end: z.enum(['mixed', 'uniform', 'short', 'cancelled']),
  size: z.number().int().meta({ description: 'rollouts, with refills' }),
  usable: z.number().int().meta({ description: 'rollouts with a reward' }),
  refilled: z.number().int(),
  reward_mean: z.number().nullable(),
  pass_rate: z.number().nullable().meta({ description: 'share of successes among the usable rollouts' }),
  selected: z.boolean().optional(),
});
export type GroupEnd = z.infer<typeof GroupEnd>;

/** Which groups a reader wants: all, those with differing rewards, or those that count for `until`. */
export const GroupChoice = z.enum(['all', 'mixed', 'selected']);
export type GroupChoice = z.infer<typeof GroupChoice>;

export type EndedGroup = GroupEnd & Pick<ResultBatch, 'results' | 'unreadable'>;
/** `last_id`: id of the last entry that was read: pass this as `afterId` to get later groups. */
type GroupBatch = { groups: EndedGroup[]; last_id: string };

const DEFAULTS = { count: 32, keep: 'all' as GroupChoice, blockMs: 0, patienceMs: 60_000 };
/** Entries that one command reads while it searches for wanted groups. */
const SEARCH = 1000;

const WANTED = {
  all: () => true,
  mixed: ({ end }) => end === 'mixed',
  selected: ({ selected }) => selected === true,
} as const satisfies Record<GroupChoice, (group: GroupEnd) => boolean>;

export const createGroupEnds = ({ redis, keys, address }: Store, results: Pick<Results, 'ofRollouts'>) => {
  const readRange = async (runId: string, after: string, count: number) => {
    const entries = await redis.xrange(keys.run(runId).ends, `(${after}`, '+', 'COUNT', count);
    return entries.map(([id, fields]) => {
      const read = readRecord(GroupEnd, fields[1] ?? '');
      return { id, group: 'value' in read ? read.value : null };
    });
  };
  const search = async (runId: string, after: string, count: number, keep: GroupChoice) => {
    const found: GroupEnd[] = [];
    let last = after;
    for (;;) {
      const entries = await readRange(
        runId,
        last,
        Math.min(keep === 'all' ? count - found.length : SEARCH, SEARCH),
      );
      for (const { id, group } of entries) {
        last = id;
        if (group && WANTED[keep](group)) found.push(group);
        if (found.length === count) return { found, last };
      }
      if (entries.length === 0) return { found, last };
    }
  };
  return {
    /** Returns all ended groups of a run, without results. */
    async list(runId: string): Promise<GroupEnd[]> {
      return (await search(runId, '0', Number.POSITIVE_INFINITY, 'all')).found;
    },
    /**
     * Returns up to `count` (default 32) groups that ended after `afterId` (`0`: all), waiting up to `blockMs` (0) for one and
     * `patienceMs` (60 000) in an outage. The position is that of the reader, so a repeated read returns the same groups.
     * @throws UnusableError `redis_unreachable` after `patienceMs`; other errors of Redis immediately
     */
    async read(
      runId: string,
      afterId: string,
      options: Partial<typeof DEFAULTS> & { signal?: AbortSignal } = {},
    ): Promise<GroupBatch> {
      const { count, keep, ...wait } = { ...DEFAULTS, ...options };
      let after = afterId;
      const next = async () => {
        const { found, last } = await search(runId, after, count, keep);
        after = last;
        return found;
      };
      const found = await readPatiently({ address }, next, (groups) => groups.length > 0, wait);
      const groups = found.map(async (group) => {
        const ids = Array.from({ length: group.size }, (_, at) => rolloutId(runId, group.instance_id, at));
        return { ...group, ...(await results.ofRollouts(runId, ids)) };
      });
      return { groups: await Promise.all(groups), last_id: after };
    },
  };
};
