import type { RunRecord } from '../records/job.ts';
import type { Store } from './part.ts';

const LIFE_SECONDS = 30 * 24 * 3600;

/** Counts the uncommitted rollouts of a caller over all its runs and over all gateways. */
export const createQuotas = ({ redis, keys }: Store) => ({
  /** Adds a run to a caller. `rollouts`: 0 for an open run, whose rollouts Redis counts. */
  async enter(caller: string, { run_id }: Pick<RunRecord, 'run_id'>, rollouts: number): Promise<void> {
    const key = keys.quota(caller);
    await redis.multi().hset(key, run_id, rollouts).expire(key, LIFE_SECONDS).exec();
  },
  /** Returns the number of rollouts without a result; removes ended runs from the caller. */
  async inFlight(caller: string): Promise<number> {
    const runs = Object.entries(await redis.hgetall(keys.quota(caller)));
    const read = redis.pipeline();
    for (const [id] of runs) {
      const of = keys.run(id);
      read.exists(of.record).hlen(of.committed).hget(of.appended, '*').hget(of.counts, 'drawn_rollouts');
    }
    const replies = ((await read.exec()) ?? []).map(([error, reply]) => {
      if (error) throw error;
      return Number(reply ?? 0);
    });
    const ended: string[] = [];
    const left = runs.map(([id, rollouts], index) => {
      const [there = 0, committed = 0, appended = 0, drawn = 0] = replies.slice(index * 4);
      const open = rollouts === '0';
      const count = there === 0 ? 0 : Math.max(0, (open ? appended : Number(rollouts) + drawn) - committed);
      // An open run may get more rollouts, so it is not removed.
      if (there === 0 || (!open && count === 0)) ended.push(id);
      return count;
    });
    if (ended.length > 0) await redis.hdel(keys.quota(caller), ...ended);
    return left.reduce((sum, count) => sum + count, 0);
  },
});
