/** Stores the live workers. Each worker has a record, which its heartbeats renew. */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { readRecord } from '../records/parse.ts';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';
import { loadScript } from './script.ts';

export const WorkerRecord = z.object({
  worker: z.string(),
  node: z.string(),
  runtime: z.string(),
  slots: z.number().int(),
  active: z.number().int(),
  /** Start of the worker in milliseconds since the epoch. */
  started_at: z.number(),
  /** Address `host:port` of /metrics; null: none. */
  metrics: z.string().nullable(),
  /** Why the worker claims nothing; null: the worker claims. */
  paused: z.string().nullable(),
  /** Whether placement by image applies: other workers may forward rollouts to this worker. */
  placed: z.boolean().optional(),
  software_version: z.string().optional(),
  /** Whether the worker has a `parser_image`; absent: unknown. */
  parser_image: z.boolean().optional(),
  /** The highest level of records that the worker understands (needs.ts). */
  understands: z.number().optional(),
});
export type WorkerRecord = z.infer<typeof WorkerRecord>;

export type Registry = {
  /** Renews the record of a worker for 15 s; call this each second. Returns the cancel epoch and whether the node is drained. */
  beat(record: WorkerRecord): Promise<{ cancel_epoch: number; drained: boolean }>;
  leave(worker: string): Promise<void>;
  list(): Promise<WorkerRecord[]>;
  /** Returns whether this worker has a record. */
  lives(worker: string): Promise<boolean>;
  /** Returns whether workers without a record are dead; false soon after an outage, until live workers have renewed their records. */
  canJudgeDead(): boolean;
  /** Returns how many workers had an expired record; {@link list} counts each once. */
  lost(): Promise<number>;
};

export const LIFE_MS = 15_000;
/** Time between two beats of this process, in ms, that indicates an outage of Redis or a stall of this process. */
const AWAY_MS = 5_000;
/** Time in ms within which live workers renew their records after an outage. */
const RETURN_MS = 6_000;

export function createRegistry(redis: Redis, keys: Keys, clock: Clock): Registry {
  const removeLost = loadScript(redis, 'workers_lost');
  /** Monotonic times in ms of the last answered beat (`repliedAt`) and of the first beat after an outage (`backAt`). */
  let repliedAt: number | null = null;
  let backAt = Number.NEGATIVE_INFINITY;
  const noteReply = (): void => {
    const now = performance.now();
    if (repliedAt !== null && now - repliedAt > AWAY_MS) backAt = now;
    repliedAt = now;
  };
  const canJudgeDead = (): boolean => {
    const now = performance.now();
    return (repliedAt === null || now - repliedAt < AWAY_MS) && now - backAt > RETURN_MS;
  };
  return {
    async beat(record) {
      const lapse = clock.now() + LIFE_MS;
      const [, , epoch, drained, time] =
        (await redis
          .multi()
          .set(keys.worker(record.worker), JSON.stringify(record), 'PX', LIFE_MS)
          .zadd(keys.workers, String(lapse), record.worker)
          .get(keys.cancelEpoch)
          .hexists(keys.drained, record.node)
          .time()
          .exec()) ?? [];
      noteReply();
      if (Array.isArray(time?.[1])) clock.observe(time[1] as unknown as [string, string]);
      return { cancel_epoch: Number(epoch?.[1] ?? 0), drained: drained?.[1] === 1 };
    },
    async leave(worker) {
      await redis.multi().del(keys.worker(worker)).zrem(keys.workers, worker).exec();
    },
    lives: async (worker) => (await redis.exists(keys.worker(worker))) === 1,
    canJudgeDead,
    async list() {
      const ids = await redis.zrange(keys.workers, '0', '-1');
      if (ids.length === 0) return [];
      const records = await redis.mget(ids.map(keys.worker));
      const dead = ids.filter((_, index) => records[index] === null);
      if (dead.length > 0 && canJudgeDead()) await removeLost([keys.workers, keys.totals('workers')], dead);
      return records.flatMap((text, index) => (text ? [recordOf(ids[index] ?? '', text)] : []));
    },
    lost: async () => Number(await redis.hget(keys.totals('workers'), 'lost')),
  };
}

/** Parses the record of a worker. A worker whose record is unreadable, because of another version, counts as alive. */
function recordOf(worker: string, text: string): WorkerRecord {
  const read = readRecord(WorkerRecord, text);
  if ('value' in read) return read.value;
  return {
    ...{ worker, node: 'unknown', runtime: 'unknown', slots: 0, active: 0, started_at: Date.now() },
    ...{ metrics: null, paused: `unreadable record: ${read.problem}` },
  };
}
