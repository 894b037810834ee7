/** Makes the jobs of rollouts from the records of the run, so that any process can queue a missing job. */
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { sizeOf } from '../records/bounds.ts';
import { parseRolloutId } from '../records/ids.ts';
import type { RolloutJob, RunRecord } from '../records/job.ts';
import type { Clock } from './clock.ts';
import type { Keys } from './keys.ts';
import { refusedByRedis } from './outage.ts';
import { priorityOf, QUEUES } from './queue.ts';

export type Jobs = {
  /** Adds jobs for these rollouts; existing jobs do not change. */
  enqueue(run: Pick<RunRecord, 'run_id' | 'kind'>, rolloutIds: readonly string[]): Promise<void>;
  /** Returns rollouts that have no job, or an ended job, which is a bug. */
  missing(rolloutIds: readonly string[]): Promise<string[]>;
  /** Makes jobs due that are delayed by more than `mostMs` because a clock was wrong. Returns their ids. */
  hasten(mostMs: number): Promise<string[]>;
  /** Removes the jobs of these rollouts, except jobs that a worker runs. */
  drop(rolloutIds: readonly string[]): Promise<void>;
  /**
   * Removes all jobs of a run, except jobs that a worker runs; those rollouts end when they find that the run is gone. Searches the queue,
   * because the records of the run may be damaged.
   */
  dropRun(runId: string): Promise<void>;
};

const BATCH = 500;
/** Factor of the score of a delayed job in BullMQ: the score is the due time in ms times this number, plus a counter. */
const DELAYED_SCALE = 4096;
/** States of BullMQ jobs that are stored in sorted sets, then states that are stored in lists. */
const SORTED = ['prioritized', 'delayed', 'failed', 'completed'] as const;
const LISTED = ['wait', 'paused', 'active'] as const;

type Store = { redis: Redis; keys: Keys; clock: Clock; queue: () => Queue<RolloutJob> };

export function createJobs(redis: Redis, keys: Keys, clock: Clock, queue: () => Queue<RolloutJob>): Jobs {
  const store: Store = { redis, keys, clock, queue };
  return {
    enqueue: (run, rolloutIds) => enqueueRollouts(store, run, rolloutIds),
    async missing(rolloutIds) {
      const missing: string[] = [];
      for (let at = 0; at < rolloutIds.length; at += BATCH) {
        missing.push(...(await missingOf(store, rolloutIds.slice(at, at + BATCH))));
      }
      return missing;
    },
    async hasten(mostMs) {
      const from = ((await clock.ask()) + mostMs) * DELAYED_SCALE;
      const delayed = keys.queue(QUEUES[0], 'delayed');
      const ids = await redis.zrangebyscore(delayed, from, '+inf', 'LIMIT', 0, BATCH);
      const promote = async (id: string): Promise<void> => (await queue().getJob(id))?.promote();
      await Promise.all(ids.map((id) => promote(id).catch(unlessRefused)));
      return ids;
    },
    drop: (rolloutIds) => dropJobs(store, rolloutIds),
    async dropRun(runId) {
      for await (const ids of queuedOf(store, runId)) await dropJobs(store, ids);
    },
  };
}

async function enqueueRollouts(
  { redis, keys, clock, queue }: Store,
  run: Pick<RunRecord, 'run_id' | 'kind'>,
  rolloutIds: readonly string[],
): Promise<void> {
  const names = rolloutIds.map((id) => ({ id, ...parseRolloutId(id) }));
  const of = keys.run(run.run_id);
  const instanceIds = [...new Set(names.map(({ instanceId }) => instanceId))];
  if (instanceIds.length === 0) return;
  const [sequences, images, refs] = await Promise.all([
    redis.hmget(of.groups, ...instanceIds.map((id) => `${id} sequence`)),
    redis.hmget(of.groups, ...instanceIds.map((id) => `${id} image`)),
    redis.hkeys(of.patches),
  ]);
  const sequenceOf = new Map(instanceIds.map((id, at) => [id, sizeOf(sequences[at]) ?? 0]));
  const imageOf = new Map(instanceIds.map((id, at) => [id, images[at]]));
  const patchesOf = patchCounts(refs);
  const now = await clock.ask();
  const jobs = names.map(({ id, instanceId, index }) => {
    const patches = patchesOf.get(instanceId);
    const image = imageOf.get(instanceId);
    const data: RolloutJob = {
      rollout_id: id,
      run_id: run.run_id,
      instance_id: instanceId,
      rollout_index: index,
      submitted_at: now,
      ...(image ? { image } : {}),
      ...(patches ? { patch_ref: `${instanceId}.${index % patches}` } : {}),
    };
    const priority = priorityOf(run.kind, sequenceOf.get(instanceId) ?? 0);
    return { name: 'rollout', data, opts: { jobId: id, priority, timestamp: now } };
  });
  for (let at = 0; at < jobs.length; at += BATCH) await queue().addBulk(jobs.slice(at, at + BATCH));
}

async function missingOf(store: Store, rolloutIds: readonly string[]): Promise<string[]> {
  const { redis, keys } = store;
  const read = redis.pipeline();
  for (const id of rolloutIds) read.hmget(keys.queue(QUEUES[0], id), 'timestamp', 'finishedOn');
  const replies = (await read.exec()) ?? [];
  const [gone, ended]: [string[], string[]] = [[], []];
  for (const [index, id] of rolloutIds.entries()) {
    const [error, found] = replies[index] ?? [];
    if (error) throw error;
    const [timestamp, finished] = (found ?? []) as (string | null)[];
    if (finished) ended.push(id);
    else if (!timestamp) gone.push(id);
  }
  // An ended job would prevent a new job with the same id.
  await dropJobs(store, ended);
  return [...gone, ...ended];
}

async function dropJobs({ queue }: Store, rolloutIds: readonly string[]): Promise<void> {
  for (let at = 0; at < rolloutIds.length; at += BATCH) {
    await Promise.all(rolloutIds.slice(at, at + BATCH).map((id) => queue().remove(id)));
  }
}

/** Yields the jobs of a run in all states. */
async function* queuedOf({ redis, keys }: Store, runId: string): AsyncGenerator<string[]> {
  const own = (ids: readonly string[]): string[] => ids.filter((id) => id.startsWith(`${runId}.`));
  const [name] = QUEUES;
  for (const state of SORTED) {
    let cursor = '0';
    do {
      const [next, pairs] = await redis.zscan(keys.queue(name, state), cursor, 'COUNT', BATCH);
      yield own(pairs.filter((_, at) => at % 2 === 0));
      cursor = next;
    } while (cursor !== '0');
  }
  for (const state of LISTED) {
    // The lists are read from the end, so that removals do not shift jobs that are not read yet.
    for (let end = await redis.llen(keys.queue(name, state)); end > 0; end -= BATCH) {
      yield own(await redis.lrange(keys.queue(name, state), Math.max(0, end - BATCH), end - 1));
    }
  }
}

/** Counts patches by instance from references `instance.number`. */
function patchCounts(refs: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const ref of refs) {
    const instanceId = ref.slice(0, ref.lastIndexOf('.'));
    counts.set(instanceId, (counts.get(instanceId) ?? 0) + 1);
  }
  return counts;
}

/** Rethrows refusals of Redis, so that the caller retries. Other errors of BullMQ mean that the state of the job changed. */
function unlessRefused(error: unknown): void {
  if (refusedByRedis(error)) throw error;
}
