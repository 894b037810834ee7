/** Reads committed results, and the counts of runs and groups. */
import { z } from 'zod';
import { SwefarmError } from '../failures/errors.ts';
import { parseRolloutId } from '../records/ids.ts';
import { readRecord } from '../records/parse.ts';
import { Result } from '../records/result.ts';
import { parseCommitted } from './commit.ts';
import { pairsIn } from './pairs.ts';
import { Part } from './part.ts';
import { readPatiently } from './patientread.ts';

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
  drawn: Count.meta({ description: 'groups that a run with `until` has opened' }),
  selected: Count.meta({ description: 'groups that count for `until`' }),
  dropped: CountBy.meta({ description: 'groups that do not count: uniform, short, cancelled or surplus' }),
  mixed_groups: Count.meta({ description: 'ended groups whose rewards differ' }),
});
export type RunCounts = z.infer<typeof RunCounts>;

/**
 * Counts of the rollouts of a group. `left`: uncommitted. `usable`: judged with a reward. `size`: opened. `refilled`: opened to replace
 * failed ones.
 */
export const GroupCount = z.object({ left: Count, usable: Count, size: Count, refilled: Count });
export type GroupCount = z.infer<typeof GroupCount>;

/** Entry of a stream: id, and fields with their values. */
type Entry = [id: string, fields: string[]];

const DEFAULTS = { count: 1000, blockMs: 0, patienceMs: 60_000 };
const KINDS = ['validation', 'session', 'training', 'collection'];
const SCAN_COUNT = 1000;

export class Results extends Part {
  readonly #countSkipped = this.script('result_skipped');

  /**
   * Returns up to `count` (default 1000) results after `afterId` (`0`: all), waiting up to `blockMs` (0) for one and `patienceMs` (60 000)
   * in an outage. Unreadable results are skipped; the farm counts each once.
   * @throws UnusableError `redis_unreachable` after `patienceMs`; other errors of Redis immediately
   */
  async read(
    runId: string,
    afterId: string,
    options: Partial<typeof DEFAULTS> & { signal?: AbortSignal } = {},
  ): Promise<ResultBatch> {
    const { count, ...wait } = { ...DEFAULTS, ...options };
    const read = () => this.#readRange(runId, `(${afterId}`, '+', count);
    const batch = await readPatiently(this.store, read, ({ last_id }) => last_id !== '', wait);
    return { ...batch, last_id: batch.last_id || afterId };
  }

  /** Returns the results of these rollouts of a run, in their order. Rollouts without a result are omitted. */
  async ofRollouts(
    runId: string,
    rolloutIds: readonly string[],
  ): Promise<Pick<ResultBatch, 'results' | 'unreadable'>> {
    const { committed, results } = this.keys.run(runId);
    const texts = rolloutIds.length === 0 ? [] : await this.redis.hmget(committed, ...rolloutIds);
    const read = this.redis.pipeline();
    const ids = texts.flatMap((text) => (text === null ? [] : parseCommitted(text).stream_id));
    for (const id of ids) read.xrange(results, id, id);
    const entries = ((await read.exec()) ?? []).flatMap(([error, reply]) => {
      if (error) throw error;
      return reply as Entry[];
    });
    return await this.#parse(runId, entries);
  }

  /** Returns the stream id of the latest result; `0`: none. */
  async latest(runId: string): Promise<string> {
    const [entry] = await this.redis.xrevrange(this.keys.run(runId).results, '+', '-', 'COUNT', 1);
    return entry?.[0] ?? '0';
  }

  async committedIds(runId: string): Promise<Set<string>> {
    return new Set(await this.redis.hkeys(this.keys.run(runId).committed));
  }

  /** Returns the committed attempts of these rollouts. */
  async winners(
    runId: string,
    rolloutIds: readonly string[],
  ): Promise<Map<string, { attempt: number; claim: string }>> {
    if (rolloutIds.length === 0) return new Map();
    const entries = await this.redis.hmget(this.keys.run(runId).committed, ...rolloutIds);
    return new Map(
      rolloutIds.flatMap((id, at) => {
        const entry = entries[at];
        return entry ? [[id, parseCommitted(entry)]] : [];
      }),
    );
  }

  /** Returns the result of a rollout; null: none. Throws SwefarmError `result_unreadable`. */
  async get(rolloutId: string): Promise<Result | null> {
    const { runId } = parseRolloutId(rolloutId);
    const entry = await this.redis.hget(this.keys.run(runId).committed, rolloutId);
    if (entry === null) return null;
    const { stream_id } = parseCommitted(entry);
    const { results, unreadable } = await this.#readRange(runId, stream_id, stream_id, 1);
    if (unreadable[0])
      throw new SwefarmError('result_unreadable', describeUnreadable(unreadable[0], rolloutId));
    return results[0]?.result ?? null;
  }

  /** Returns the number of unreadable results of the farm. */
  async unreadable(): Promise<number> {
    return Number(await this.redis.hget(this.keys.totals('results'), 'unreadable'));
  }

  async counts(runId: string): Promise<RunCounts> {
    return runCounts(await this.redis.hgetall(this.keys.run(runId).counts));
  }

  async groups(runId: string): Promise<Map<string, GroupCount>> {
    return groupCounts(await this.redis.hgetall(this.keys.run(runId).groups));
  }

  /** Returns the sums over all runs, by kind, for metrics. */
  async totals(): Promise<Map<string, Record<string, number>>> {
    return await this.#sumsBy(KINDS, this.keys.totals);
  }

  /** Returns the sums by kind and policy version, for the versions that committed last. */
  async versionTotals(): Promise<Map<string, Map<string, Record<string, number>>>> {
    const { redis, keys } = this;
    const totals = KINDS.map(async (kind) => {
      const versions = await redis.zrange(keys.versions(kind), '0', '-1');
      return [kind, await this.#sumsBy(versions, (one) => keys.versionTotals(kind, one))] as const;
    });
    return new Map(await Promise.all(totals));
  }

  async #sumsBy(
    names: readonly string[],
    keyOf: (name: string) => string,
  ): Promise<Map<string, Record<string, number>>> {
    const sums = names.map(async (name) => {
      const hash = Object.entries(await this.redis.hgetall(keyOf(name)));
      return [name, Object.fromEntries(hash.map(([counter, value]) => [counter, Number(value)]))] as const;
    });
    return new Map(await Promise.all(sums));
  }

  async #readRange(runId: string, start: string, end: string, count: number): Promise<ResultBatch> {
    return await this.#parse(
      runId,
      await this.redis.xrange(this.keys.run(runId).results, start, end, 'COUNT', count),
    );
  }

  async #parse(runId: string, entries: readonly Entry[]): Promise<ResultBatch> {
    const batch: ResultBatch = { results: [], unreadable: [], last_id: entries.at(-1)?.[0] ?? '' };
    for (const [stream_id, fields] of entries) {
      const read = readRecord(Result, fields[1] ?? '');
      if ('value' in read) batch.results.push({ stream_id, result: read.value });
      else batch.unreadable.push({ stream_id, rollout_id: null, problem: read.problem });
    }
    if (batch.unreadable.length > 0) await this.#nameUnreadable(runId, batch.unreadable);
    return batch;
  }

  /** Sets the rollout ids of unreadable entries, from the hash of commits, and counts the entries. */
  async #nameUnreadable(runId: string, unreadable: readonly UnreadableResult[]): Promise<void> {
    const { record, committed, skipped } = this.keys.run(runId);
    const wanted = new Map(unreadable.map((one) => [one.stream_id, one]));
    for await (const pairs of pairsIn(this.redis.hscanStream(committed, { count: SCAN_COUNT }))) {
      for (const [rolloutId, text] of pairs) {
        const entry = wanted.get(parseCommitted(text).stream_id);
        if (entry) entry.rollout_id = rolloutId;
      }
    }
    const entries = unreadable.flatMap(({ stream_id, problem }) => [stream_id, problem]);
    await this.#countSkipped([record, skipped, this.keys.totals('results')], entries);
  }
}

export function describeUnreadable(entry: UnreadableResult, rolloutId = entry.rollout_id): string {
  const rollout = rolloutId ?? 'unknown rollout';
  return (
    `${rollout}: unreadable result (entry ${entry.stream_id} of the run's stream): ${entry.problem}; ` +
    'use the version of swefarm that wrote it, or a newer one'
  );
}

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
    drawn: of('drawn'),
    selected: of('selected'),
    dropped: labelled('dropped'),
    mixed_groups: of('mixed_groups'),
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
