/**
 * The groups of a run while it goes on: which rollouts were opened (at submit, added, refilled by the commit), which
 * have no result yet, and whether the run is paused. Maintenance and the collector ask this.
 */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { UsageError } from '../failures/errors.ts';
import { MOST } from '../records/bounds.ts';
import { byRun, parseRolloutId, rolloutId } from '../records/ids.ts';
import type { RunRecord } from '../records/job.ts';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';
import { readRun, type UnreadableRun } from './record.ts';
import { createRolloutLists } from './rollouts.ts';
import { loadScript } from './script.ts';

/** Why a run is paused, and its counts at the time when it was last resumed. */
export const RunPause = z.object({
  /** One line for people; null: the run is not paused. */
  reason: z.string().nullable(),
  /** Milliseconds since the epoch. */
  at: z.number(),
  /** When the run is resumed without a person, in milliseconds since the epoch; absent: never. */
  ends_at: z.number().optional(),
  /** Counts when it was resumed: failures before that do not pause it again. */
  since: z
    .object({
      committed: z.number(),
      failures: z.record(z.string(), z.number()),
      answers: z.number(),
      unread: z.record(z.string(), z.number()),
    })
    .nullable(),
});
export type RunPause = z.infer<typeof RunPause>;

export type Groups = {
  /**
   * Runs that may have rollouts without a result, and the time by Redis's clock in milliseconds. `unreadable`: those of them
   * whose records this version cannot read, or must leave to a newer one.
   */
  unfinishedRuns(): Promise<{ now: number; runs: RunRecord[]; unreadable: UnreadableRun[] }>;
  /**
   * Every rollout of the run, group by group, refilled ones too: some hundred at once, however many there are. All that read
   * sizes of groups throw SwefarmError `group_out_of_bounds` for what no version of ours has written.
   */
  rolloutParts(runId: string): AsyncGenerator<string[]>;
  /** Those of them without a result; of these instances, if given. */
  openParts(runId: string, instanceIds?: readonly string[]): AsyncGenerator<string[]>;
  /** All of {@link rolloutParts} at once, for callers that need them all in memory. */
  rollouts(runId: string): Promise<string[]>;
  /** All of {@link openParts}. */
  open(runId: string): Promise<string[]>;
  /** How many have no result. */
  left(runId: string): Promise<number>;
  /** Those of the given rollouts of a run that were opened and have no result. */
  stillOpen(runId: string, rolloutIds: readonly string[]): Promise<string[]>;
  /** Opens `count` more rollouts of an instance whose record is there; their ids. Their jobs are the caller's. */
  add(runId: string, instanceId: string, count: number): Promise<string[]>;
  /** These are not to be run: an output outside of Redis has their results. Safe to repeat. */
  markDoneElsewhere(rolloutIds: readonly string[]): Promise<void>;
  /** The reverse, for rollouts that are to be run after all. */
  reopen(rolloutIds: readonly string[]): Promise<void>;
  /** Takes the run off the list of unfinished ones; false when something of it is open. */
  retire(runId: string): Promise<boolean>;
  /**
   * Nothing more of the run is claimed until {@link resume}; false when it was already paused, or is gone. `known`: what
   * {@link paused} returned when the run was judged; also false when somebody has resumed it since. `lastsMs`: after this the run is
   * due to be resumed; absent: a person resumes it.
   */
  pause(runId: string, reason: string, known?: RunPause | null, lastsMs?: number): Promise<boolean>;
  /** `since`: the counts of the run now. */
  resume(runId: string, since: RunPause['since']): Promise<void>;
  paused(runId: string): Promise<RunPause | null>;
};

const BATCH = 500;

const groupScripts = (redis: Redis) => ({
  add: loadScript(redis, 'group_add'),
  done: loadScript(redis, 'group_done'),
  pause: loadScript(redis, 'run_pause'),
  retire: loadScript(redis, 'run_retire'),
});

type Store = { redis: Redis; keys: Keys; scripts: ReturnType<typeof groupScripts> };

export function createGroups(redis: Redis, keys: Keys, clock: Clock): Groups {
  const scripts = groupScripts(redis);
  const store: Store = { redis, keys, scripts };
  const lists = createRolloutLists(redis, keys);
  return {
    ...lists,
    rollouts: async (runId) => (await Array.fromAsync(lists.rolloutParts(runId))).flat(),
    open: async (runId) => (await Array.fromAsync(lists.openParts(runId))).flat(),
    unfinishedRuns: () => readUnfinished(store),
    add: (runId, instanceId, count) => addRollouts(store, runId, instanceId, count),
    markDoneElsewhere: (rolloutIds) => markDone(store, 'close', rolloutIds),
    reopen: (rolloutIds) => markDone(store, 'open', rolloutIds),
    retire: async (runId) => (await scripts.retire([keys.run(runId).groups, keys.unfinished], [runId])) === 1,
    async pause(runId, reason, known, lastsMs) {
      const { record, paused } = keys.run(runId);
      const at = known === undefined ? '*' : (known?.at ?? '');
      return (await scripts.pause([record, paused], [reason, at, lastsMs ?? ''])) === 1;
    },
    async resume(runId, since) {
      const { record, paused } = keys.run(runId);
      const lifeMs = await redis.pttl(record);
      if (lifeMs < 0) return;
      await redis.set(paused, JSON.stringify({ reason: null, at: await clock.ask(), since }), 'PX', lifeMs);
    },
    async paused(runId) {
      const text = await redis.get(keys.run(runId).paused);
      return text === null ? null : RunPause.parse(JSON.parse(text));
    },
  };
}

async function readUnfinished({ redis, keys }: Store): ReturnType<Groups['unfinishedRuns']> {
  const [ids, [seconds, microseconds]] = await Promise.all([redis.smembers(keys.unfinished), redis.time()]);
  const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  if (ids.length === 0) return { now, runs: [], unreadable: [] };
  const texts = await redis.mget(ids.map((id) => keys.run(id).record));
  const gone = ids.filter((_, index) => texts[index] === null);
  if (gone.length > 0) await redis.srem(keys.unfinished, ...gone);
  const read = ids.flatMap((id, index) => {
    const text = texts[index];
    return text ? [readRun(id, text)] : [];
  });
  return {
    now,
    runs: read.flatMap((one) => ('run' in one ? [one.run] : [])),
    unreadable: read.flatMap((one) => ('unreadable' in one ? [one.unreadable] : [])),
  };
}

async function addRollouts(
  { keys, scripts }: Store,
  runId: string,
  instanceId: string,
  count: number,
): Promise<string[]> {
  if (!Number.isInteger(count) || count < 1 || count > MOST.group) {
    throw new UsageError(`${count} more rollouts: expected a whole number from 1 to ${MOST.group}`);
  }
  const of = keys.run(runId);
  const size = Number(await scripts.add([of.record, of.groups, keys.unfinished], [runId, instanceId, count]));
  if (size === 0) return [];
  return Array.from({ length: count }, (_, index) => rolloutId(runId, instanceId, size - count + index));
}

async function markDone(
  { keys, scripts }: Store,
  change: 'close' | 'open',
  rolloutIds: readonly string[],
): Promise<void> {
  for (const [runId, ids] of byRun(rolloutIds)) {
    const of = keys.run(runId);
    for (let at = 0; at < ids.length; at += BATCH) {
      const pairs = ids.slice(at, at + BATCH).flatMap((id) => [id, parseRolloutId(id).instanceId]);
      await scripts.done([of.record, of.committed, of.groups, keys.unfinished], [runId, change, ...pairs]);
    }
  }
}
