/** Stores the live workers. Each worker has a record, which its heartbeats renew. */
import { z } from 'zod';
import { readRecord } from '../records/parse.ts';
import { Part } from './part.ts';

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
  /** Installed programs of agents, each as its bundle and the start of its lock; absent: unknown. */
  bundles: z.array(z.string()).optional(),
  /** The highest level of records that the worker understands (needs.ts). */
  understands: z.number().optional(),
});
export type WorkerRecord = z.infer<typeof WorkerRecord>;

export const LIFE_MS = 15_000;
/** Time between two beats of this process, in ms, that indicates an outage of Redis or a stall of this process. */
const AWAY_MS = 5_000;
/** Time in ms within which live workers renew their records after an outage. */
const RETURN_MS = 6_000;

export class Registry extends Part {
  readonly #removeLost = this.script('workers_lost');
  /** Monotonic times in ms of the last answered beat (`repliedAt`) and of the first beat after an outage (`backAt`). */
  #repliedAt: number | null = null;
  #backAt = Number.NEGATIVE_INFINITY;

  /** Renews the record of a worker for 15 s; call this each second. Returns the cancel epoch and whether the node is drained. */
  async beat(record: WorkerRecord): Promise<{ cancel_epoch: number; drained: boolean }> {
    const { keys } = this;
    const { clock } = this.store;
    const [, , epoch, drained, time] =
      (await this.redis
        .multi()
        .set(keys.worker(record.worker), JSON.stringify(record), 'PX', LIFE_MS)
        .zadd(keys.workers, String(clock.now() + LIFE_MS), record.worker)
        .get(keys.cancelEpoch)
        .hexists(keys.drained, record.node)
        .time()
        .exec()) ?? [];
    const now = performance.now();
    if (this.#repliedAt !== null && now - this.#repliedAt > AWAY_MS) this.#backAt = now;
    this.#repliedAt = now;
    if (Array.isArray(time?.[1])) clock.observe(time[1] as unknown as [string, string]);
    return { cancel_epoch: Number(epoch?.[1] ?? 0), drained: drained?.[1] === 1 };
  }

  async leave(worker: string): Promise<void> {
    await this.redis.multi().del(this.keys.worker(worker)).zrem(this.keys.workers, worker).exec();
  }

  async list(): Promise<WorkerRecord[]> {
    const { keys } = this;
    const ids = await this.redis.zrange(keys.workers, '0', '-1');
    if (ids.length === 0) return [];
    const records = await this.redis.mget(ids.map(keys.worker));
    const dead = ids.filter((_, index) => records[index] === null);
    if (dead.length > 0 && this.canJudgeDead())
      await this.#removeLost([keys.workers, keys.totals('workers')], dead);
    return records.flatMap((text, index) => (text ? [recordOf(ids[index] ?? '', text)] : []));
  }

  /** Returns whether this worker has a record. */
  async lives(worker: string): Promise<boolean> {
    return (await this.redis.exists(this.keys.worker(worker))) === 1;
  }

  /** Returns whether workers without a record are dead; false in an outage, and after it until live workers have renewed their records. */
  canJudgeDead(): boolean {
    const now = performance.now();
    return (this.#repliedAt === null || now - this.#repliedAt < AWAY_MS) && now - this.#backAt > RETURN_MS;
  }

  /** Returns how many workers had an expired record; {@link list} counts each once. */
  async lost(): Promise<number> {
    return Number(await this.redis.hget(this.keys.totals('workers'), 'lost'));
  }
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
