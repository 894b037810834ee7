/** The groups of a running run: opened rollouts (also those that a commit opens for lost ones), rollouts without a result, and pauses. */
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

export const RunPause = z.object({
  /** Reason of the pause; null: the run is not paused. */
  reason: z.string().nullable(),
  /** Time of the pause or resume in milliseconds since the epoch. */
  at: z.number(),
  /** Time of the automatic resume, in milliseconds since the epoch; absent: never. */
  ends_at: z.number().optional(),
  /** Counts at the last resume; earlier failures do not pause the run again. */
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
   * Returns runs that may have rollouts without a result, and the time of Redis in milliseconds. `unreadable`: runs whose records are
   * damaged or of a newer version.
   */
  unfinishedRuns(): Promise<{ now: number; runs: RunRecord[]; unreadable: UnreadableRun[] }>;
  /**
   * Yields all rollouts of the run by group, a few hundred at a time. All methods that read sizes of groups throw SwefarmError
   * `group_out_of_bounds` for invalid sizes.
   */
  rolloutParts(runId: string): AsyncGenerator<string[]>;
  /** Yields rollouts without a result, of these instances or of all. */
  openParts(runId: string, instanceIds?: readonly string[]): AsyncGenerator<string[]>;
  rollouts(runId: string): Promise<string[]>;
  /** Returns all rollouts without a result. */
  open(runId: string): Promise<string[]>;
  /** Returns the number of rollouts without a result. */
  left(runId: string): Promise<number>;
  /** Returns which of these rollouts are opened and have no result. */
  stillOpen(runId: string, rolloutIds: readonly string[]): Promise<string[]>;
  /** Opens `count` more rollouts of an instance and returns their ids; the caller queues their jobs. */
  add(runId: string, instanceId: string, count: number): Promise<string[]>;
  /** Closes rollouts whose results are in an output outside of Redis. Closing a rollout twice has no effect. */
  markDoneElsewhere(rolloutIds: readonly string[]): Promise<void>;
  /** Reverses {@link markDoneElsewhere}. */
  reopen(rolloutIds: readonly string[]): Promise<void>;
  /** Removes the run from the unfinished runs; false if a rollout has no result yet. */
  retire(runId: string): Promise<boolean>;
  /**
   * Stops claims of the run until {@link resume}. Returns false if the run is paused or expired, or was resumed since `known`, an earlier
   * result of {@link paused}. @param lastsMs time until the automatic resume; absent: a user resumes the run
   */
  pause(runId: string, reason: string, known?: RunPause | null, lastsMs?: number): Promise<boolean>;
  /** Resumes the run. @param since present counts of the run */
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
    unfinishedRuns: () => readUnfinished(store, clock),
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

async function readUnfinished({ redis, keys }: Store, clock: Clock): ReturnType<Groups['unfinishedRuns']> {
  const [ids, now] = await Promise.all([redis.smembers(keys.unfinished), clock.ask()]);
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
