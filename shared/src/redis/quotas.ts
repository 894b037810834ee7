/** Counts the uncommitted rollouts of a caller over all its runs and over all gateways. */
import type { Redis } from 'ioredis';
import type { RunRecord } from '../records/job.ts';
import type { Keys } from './keys.ts';

export type Quotas = {
  /** Adds a run to a caller. `rollouts`: 0 for an open run, whose rollouts Redis counts. */
  enter(caller: string, run: Pick<RunRecord, 'run_id'>, rollouts: number): Promise<void>;
  /** Returns the number of rollouts without a result; removes ended runs from the caller. */
  inFlight(caller: string): Promise<number>;
};

const LIFE_SECONDS = 30 * 24 * 3600;

export function createQuotas(redis: Redis, keys: Keys): Quotas {
  return {
    async enter(caller, { run_id }, rollouts) {
      await redis
        .multi()
        .hset(keys.quota(caller), run_id, rollouts)
        .expire(keys.quota(caller), LIFE_SECONDS)
        .exec();
    },
    async inFlight(caller) {
      const runs = Object.entries(await redis.hgetall(keys.quota(caller)));
      const read = redis.pipeline();
      for (const [id] of runs) {
        const of = keys.run(id);
        read.exists(of.record).hlen(of.committed).hget(of.appended, '*');
      }
      const replies = ((await read.exec()) ?? []).map(([error, reply]) => {
        if (error) throw error;
        return Number(reply ?? 0);
      });
      const ended: string[] = [];
      const left = runs.map(([id, rollouts], index) => {
        const [there = 0, committed = 0, appended = 0] = replies.slice(index * 3);
        const open = rollouts === '0';
        const count = there === 0 ? 0 : Math.max(0, (open ? appended : Number(rollouts)) - committed);
        // An open run may get more rollouts; a submitted run may not.
        if (there === 0 || (!open && count === 0)) ended.push(id);
        return count;
      });
      if (ended.length > 0) await redis.hdel(keys.quota(caller), ...ended);
      return left.reduce((sum, count) => sum + count, 0);
    },
  };
}
