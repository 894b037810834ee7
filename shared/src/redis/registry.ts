/** Which workers are alive: each has a record that expires unless its heartbeats renew it. */
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
  /** Milliseconds since the epoch. */
  started_at: z.number(),
  /** `host:port` of /metrics; null when it has none. */
  metrics: z.string().nullable(),
  /** Why it claims nothing now; null while it claims. */
  paused: z.string().nullable(),
  /** Rollouts may be handed to it because of their image; absent: no. */
  placed: z.boolean().optional(),
  /** The version of its software. */
  software_version: z.string().optional(),
  /** It names an image in which programs of datasets read outcomes; absent: not known to. */
  parser_image: z.boolean().optional(),
  /** The highest `needs` of records that it may work on (needs.ts). */
  understands: z.number().optional(),
});
export type WorkerRecord = z.infer<typeof WorkerRecord>;

export type Registry = {
  /**
   * Call each second; the record lives 15 s. One round trip also answers the cancel epoch, and whether somebody asked to
   * empty the worker's node.
   */
  beat(record: WorkerRecord): Promise<{ cancel_epoch: number; drained: boolean }>;
  leave(worker: string): Promise<void>;
  list(): Promise<WorkerRecord[]>;
  /** Whether this worker has a record. */
  lives(worker: string): Promise<boolean>;
  /**
   * Whether a worker without a record is surely dead. False just after Redis was unreachable for this process, when living
   * workers may not have beaten again yet.
   */
  canJudgeDead(): boolean;
  /** Workers whose record expired although they did not leave, since the farm began; {@link list} counts each once. */
  lost(): Promise<number>;
};

/** Life time of a worker's record, from its last beat. */
export const LIFE_MS = 15_000;
/** Beats of our own that are further apart mean that Redis was away, or this process stood still. */
const AWAY_MS = 5_000;
/** How long living workers may need to beat again: their clients reconnect within two seconds. */
const RETURN_MS = 6_000;

export function createRegistry(redis: Redis, keys: Keys, clock: Clock): Registry {
  const removeLost = loadScript(redis, 'workers_lost');
  /** By the monotonic clock: our last beat, and when the first one after an outage was answered. */
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
      // The record's own life time decides: clocks of nodes may differ.
      const dead = ids.filter((_, index) => records[index] === null);
      if (dead.length > 0 && canJudgeDead()) await removeLost([keys.workers, keys.totals('workers')], dead);
      return records.flatMap((text, index) => (text ? [recordOf(ids[index] ?? '', text)] : []));
    },
    lost: async () => Number(await redis.hget(keys.totals('workers'), 'lost')),
  };
}

/** A worker whose record cannot be read, of another version, is alive all the same: its rollouts must not be taken for lost. */
function recordOf(worker: string, text: string): WorkerRecord {
  const read = readRecord(WorkerRecord, text);
  if ('value' in read) return read.value;
  return {
    ...{ worker, node: 'unknown', runtime: 'unknown', slots: 0, active: 0, started_at: Date.now() },
    ...{ metrics: null, paused: `its record cannot be read here: ${read.problem}` },
  };
}
