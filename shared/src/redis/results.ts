/** Reads committed results, and the counts of runs and groups. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { SwefarmError } from '../failures/errors.ts';
import { parseRolloutId } from '../records/ids.ts';
import { readRecord } from '../records/parse.ts';
import { Result } from '../records/result.ts';
import { exponentialBackoff } from '../waiting/retry.ts';
import { sleep } from '../waiting/sleep.ts';
import { parseCommitted } from './commit.ts';
import type { Keys } from './keys.ts';
import { asUnusable } from './outage.ts';
import { loadScript, type Script } from './script.ts';

const Count = z.number().int();
const CountBy = z.record(z.string(), Count);

/** A committed result that is damaged or of another version. `rollout_id` is null if it is unknown. */
export const UnreadableResult = z.object({
  stream_id: z.string(),
  rollout_id: z.string().nullable(),
  problem: z.string(),
});
export type UnreadableResult = z.infer<typeof UnreadableResult>;

export type ResultBatch = {
  results: { stream_id: string; result: Result }[];
  /** Entries that were skipped because they are unreadable. */
  unreadable: UnreadableResult[];
  /** Id of the last entry: pass this as `afterId` to get later results. */
  last_id: string;
};

/** Sums over the results of a run. Keys that a map does not contain are zero. */
export const RunCounts = z.object({
  committed: Count,
  outcomes: z.object({ judged: Count, failed: Count, cancelled: Count }),
  resolved: Count,
  scored: Count.meta({ description: 'judged by a number alone, in no resolve rate' }),
  rewarded: Count,
  reward_sum: z.number(),
  /** Number of turns of judged rollouts. */
  turns_sum: z.number(),
  prompt_tokens: Count,
  completion_tokens: Count,
  /** Answers of the model in all rollouts, whatever their outcome. */
  answers: Count,
  /** Answers with unreadable tool calls, by marker. */
  unread: CountBy,
  exit_statuses: CountBy,
  failures: CountBy,
});
export type RunCounts = z.infer<typeof RunCounts>;

/**
 * Counts of the rollouts of a group. `left`: uncommitted. `usable`: judged with a reward. `size`: opened. `refilled`: opened to replace
 * lost ones.
 */
export const GroupCount = z.object({ left: Count, usable: Count, size: Count, refilled: Count });
export type GroupCount = z.infer<typeof GroupCount>;

export type Results = {
  /**
   * Returns up to `count` (default 1000) results after `afterId` (`0`: all), waiting up to `blockMs` (0) for one and `patienceMs` (60 000)
   * in an outage. Unreadable results are skipped; the farm counts each once.
   * @throws UnusableError `redis_unreachable`
   */
  read(
    runId: string,
    afterId: string,
    options?: { count?: number; blockMs?: number; patienceMs?: number; signal?: AbortSignal },
  ): Promise<ResultBatch>;
  /** Returns the stream id of the latest result; `0`: none. */
  latest(runId: string): Promise<string>;
  committedIds(runId: string): Promise<Set<string>>;
  /** Returns the committed attempts of these rollouts. */
  winners(
    runId: string,
    rolloutIds: readonly string[],
  ): Promise<Map<string, { attempt: number; claim: string }>>;
  /** Returns the result of a rollout; null: none. Throws SwefarmError `result_unreadable`. */
  get(rolloutId: string): Promise<Result | null>;
  /** Returns the number of unreadable results of the farm. */
  unreadable(): Promise<number>;
  counts(runId: string): Promise<RunCounts>;
  groups(runId: string): Promise<Map<string, GroupCount>>;
  /** Returns the sums over all runs, by kind, for metrics. */
  totals(): Promise<Map<string, Record<string, number>>>;
  /** Returns the sums by kind and policy version, for the versions that committed last. */
  versionTotals(): Promise<Map<string, Map<string, Record<string, number>>>>;
};

const DEFAULTS = { count: 1000, blockMs: 0, patienceMs: 60_000 };
/** Pauses in ms between two reads. Unlike a blocking read, polling can be aborted and needs no second connection. */
const pauseMs = exponentialBackoff(10, 250, 1.5);
const KINDS = ['validation', 'session', 'training', 'collection'];
const SCAN_COUNT = 1000;

type Store = { redis: Redis; keys: Keys; address: string; countSkipped: Script };

export function createResults(redis: Redis, keys: Keys, address: string): Results {
  const store: Store = { redis, keys, address, countSkipped: loadScript(redis, 'result_skipped') };
  return {
    read: (runId, afterId, options = {}) => readBatch(store, runId, afterId, { ...DEFAULTS, ...options }),
    async latest(runId) {
      const [entry] = await redis.xrevrange(keys.run(runId).results, '+', '-', 'COUNT', 1);
      return entry?.[0] ?? '0';
    },
    committedIds: async (runId) => new Set(await redis.hkeys(keys.run(runId).committed)),
    async winners(runId, rolloutIds) {
      if (rolloutIds.length === 0) return new Map();
      const entries = await redis.hmget(keys.run(runId).committed, ...rolloutIds);
      return new Map(
        entries.flatMap((entry, at) =>
          entry === null ? [] : [[rolloutIds[at] ?? '', parseCommitted(entry)]],
        ),
      );
    },
    get: (rolloutId) => readResult(store, rolloutId),
    unreadable: async () => Number(await redis.hget(keys.totals('results'), 'unreadable')),
    counts: async (runId) => runCounts(await redis.hgetall(keys.run(runId).counts)),
    groups: async (runId) => groupCounts(await redis.hgetall(keys.run(runId).groups)),
    async totals() {
      const hashes = await Promise.all(KINDS.map((kind) => redis.hgetall(keys.totals(kind))));
      return new Map(KINDS.map((kind, index) => [kind, numbers(hashes[index] ?? {})]));
    },
    async versionTotals() {
      const kinds = await Promise.all(KINDS.map((kind) => versionTotalsOf(store, kind)));
      return new Map(KINDS.map((kind, index) => [kind, kinds[index] ?? new Map()]));
    },
  };
}

type BatchOptions = typeof DEFAULTS & { signal?: AbortSignal };

/** Polls until there are results or the time is over. */
async function readBatch(
  store: Store,
  runId: string,
  afterId: string,
  { count, blockMs, patienceMs, signal }: BatchOptions,
): Promise<ResultBatch> {
  const until = Date.now() + blockMs;
  let awaySince: number | null = null;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    try {
      const batch = await readRange(store, runId, { start: `(${afterId}`, end: '+', count });
      awaySince = null;
      if (batch.last_id !== '') return batch;
      if (Date.now() >= until) return { ...batch, last_id: afterId };
    } catch (error) {
      const outage = asUnusable(error, store.address);
      awaySince ??= Date.now();
      if (outage?.code !== 'redis_unreachable' || Date.now() - awaySince >= patienceMs) throw outage ?? error;
    }
    await sleep(pauseMs(tries), signal);
  }
}

async function readRange(
  store: Store,
  runId: string,
  { start, end, count }: { start: string; end: string; count: number },
): Promise<ResultBatch> {
  const entries = await store.redis.xrange(store.keys.run(runId).results, start, end, 'COUNT', count);
  const batch: ResultBatch = { results: [], unreadable: [], last_id: entries.at(-1)?.[0] ?? '' };
  for (const [stream_id, fields] of entries) {
    const read = readRecord(Result, fields[1] ?? '');
    if ('value' in read) batch.results.push({ stream_id, result: read.value });
    else batch.unreadable.push({ stream_id, rollout_id: null, problem: read.problem });
  }
  if (batch.unreadable.length > 0) await nameUnreadable(store, runId, batch.unreadable);
  return batch;
}

/** Sets the rollout ids of unreadable entries, from the hash of commits, and counts the entries. */
async function nameUnreadable(
  { redis, keys, countSkipped }: Store,
  runId: string,
  unreadable: readonly UnreadableResult[],
): Promise<void> {
  const { record, committed, skipped } = keys.run(runId);
  const wanted = new Map(unreadable.map((one) => [one.stream_id, one]));
  let cursor = '0';
  do {
    const [next, pairs] = await redis.hscan(committed, cursor, 'COUNT', SCAN_COUNT);
    for (let at = 0; at < pairs.length; at += 2) {
      const entry = wanted.get(parseCommitted(pairs[at + 1] ?? '').stream_id);
      if (entry) entry.rollout_id = pairs[at] ?? null;
    }
    cursor = next;
  } while (cursor !== '0');
  const entries = unreadable.flatMap(({ stream_id, problem }) => [stream_id, problem]);
  await countSkipped([record, skipped, keys.totals('results')], entries);
}

async function readResult(store: Store, rolloutId: string): Promise<Result | null> {
  const { runId } = parseRolloutId(rolloutId);
  const entry = await store.redis.hget(store.keys.run(runId).committed, rolloutId);
  if (entry === null) return null;
  const { stream_id } = parseCommitted(entry);
  const { results, unreadable } = await readRange(store, runId, {
    start: stream_id,
    end: stream_id,
    count: 1,
  });
  if (unreadable[0])
    throw new SwefarmError('result_unreadable', describeUnreadable(unreadable[0], rolloutId));
  return results[0]?.result ?? null;
}

async function versionTotalsOf(
  { redis, keys }: Store,
  kind: string,
): Promise<Map<string, Record<string, number>>> {
  const versions = await redis.zrange(keys.versions(kind), '0', '-1');
  const hashes = await Promise.all(versions.map((one) => redis.hgetall(keys.versionTotals(kind, one))));
  return new Map(versions.map((version, index) => [version, numbers(hashes[index] ?? {})]));
}

export function describeUnreadable(entry: UnreadableResult, rolloutId = entry.rollout_id): string {
  const rollout = rolloutId ?? 'unknown rollout';
  return (
    `${rollout}: unreadable result (entry ${entry.stream_id} of the run's stream): ${entry.problem}; ` +
    'use the version of swefarm that wrote it, or a newer one'
  );
}

const numbers = (hash: Record<string, string>): Record<string, number> =>
  Object.fromEntries(Object.entries(hash).map(([name, value]) => [name, Number(value)]));

function runCounts(hash: Record<string, string>): RunCounts {
  const of = (name: string): number => Number(hash[name] ?? 0);
  const labelled = (label: string): Record<string, number> =>
    Object.fromEntries(
      Object.entries(hash).flatMap(([name, value]) =>
        name.startsWith(`${label}:`) ? [[name.slice(label.length + 1), Number(value)]] : [],
      ),
    );
  return {
    committed: of('committed'),
    outcomes: {
      judged: of('outcome:judged'),
      failed: of('outcome:failed'),
      cancelled: of('outcome:cancelled'),
    },
    resolved: of('resolved'),
    scored: of('scored'),
    rewarded: of('rewarded'),
    reward_sum: of('reward_sum'),
    turns_sum: of('turns_sum'),
    prompt_tokens: of('prompt_tokens'),
    completion_tokens: of('completion_tokens'),
    answers: of('answers'),
    unread: labelled('unread'),
    exit_statuses: labelled('exit'),
    failures: labelled('failure'),
  };
}

function groupCounts(hash: Record<string, string>): Map<string, GroupCount> {
  const groups = new Map<string, GroupCount>();
  for (const [name, value] of Object.entries(hash)) {
    const cut = name.lastIndexOf(' ');
    const instanceId = name.slice(0, cut);
    const group = groups.get(instanceId) ?? { left: 0, usable: 0, size: 0, refilled: 0 };
    const field = name.slice(cut + 1);
    if (field in group) group[field as keyof GroupCount] = Number(value);
    groups.set(instanceId, group);
  }
  return groups;
}
