/** Cancels rollouts. Each run has marks with reasons, and workers poll one number (the epoch) that each cancellation increments. */
import type { Redis } from 'ioredis';
import { byRun, parseRolloutId } from '../records/ids.ts';
import { type CancelReason, reasonOf } from '../records/result.ts';
import type { Keys } from './keys.ts';

/** Expired runs are ignored, and the first reason of a cancellation does not change. */
export type Cancel = {
  cancelRun(runId: string, reason?: CancelReason): Promise<void>;
  /** Cancels the rollouts of one instance, including rollouts that are added later. */
  cancelGroup(runId: string, instanceId: string, reason?: CancelReason): Promise<void>;
  cancelRollouts(rolloutIds: readonly string[], reason?: CancelReason): Promise<void>;
  /** Returns which of these rollouts are cancelled, with reasons: the rollout, its group or its run is marked. */
  isCancelled(rolloutIds: readonly string[]): Promise<Map<string, CancelReason>>;
  /** Returns why the whole run was cancelled; null: the run was not cancelled. */
  runCancelled(runId: string): Promise<CancelReason | null>;
  /** Yields the cancelled rollouts and instances of a run, about 500 at a time; ignores the cancellation of the whole run. */
  markParts(runId: string): AsyncGenerator<{ rollouts: string[]; groups: string[] }>;
  /** Returns a number that each cancellation increments; call `isCancelled` only after a change. */
  epoch(): Promise<number>;
};

const ALL = '*';

/** Prefix of the mark of a group. Ids of rollouts contain no blank, so these marks differ. */
const GROUP = 'group ';
const groupMark = (instanceId: string): string => `${GROUP}${instanceId}`;
const SCAN_COUNT = 500;

export function createCancel(redis: Redis, keys: Keys): Cancel {
  const add = async (runId: string, marks: readonly string[], reason: CancelReason): Promise<void> => {
    const of = keys.run(runId);
    const lifeMs = await redis.pttl(of.record);
    if (lifeMs < 0) return;
    const write = redis.multi();
    for (const mark of marks) write.hsetnx(of.cancelled, mark, reason);
    await write.pexpire(of.cancelled, lifeMs).incr(keys.cancelEpoch).exec();
  };
  return {
    cancelRun: (runId, reason = 'cancelled') => add(runId, [ALL], reason),
    cancelGroup: (runId, instanceId, reason = 'cancelled') => add(runId, [groupMark(instanceId)], reason),
    async cancelRollouts(rolloutIds, reason = 'cancelled') {
      for (const [runId, ids] of byRun(rolloutIds)) await add(runId, ids, reason);
    },
    async isCancelled(rolloutIds) {
      const cancelled = new Map<string, CancelReason>();
      for (const [runId, ids] of byRun(rolloutIds)) {
        const groups = ids.map((id) => groupMark(parseRolloutId(id).instanceId));
        const [all, ...each] = await redis.hmget(keys.run(runId).cancelled, ALL, ...ids, ...groups);
        for (const [index, id] of ids.entries()) {
          const reason = each[index] ?? each[ids.length + index] ?? all;
          if (reason) cancelled.set(id, reasonOf(reason));
        }
      }
      return cancelled;
    },
    async runCancelled(runId) {
      const reason = await redis.hget(keys.run(runId).cancelled, ALL);
      return reason === null ? null : reasonOf(reason);
    },
    async *markParts(runId) {
      let cursor = '0';
      do {
        const [next, fields] = await redis.hscan(keys.run(runId).cancelled, cursor, 'COUNT', SCAN_COUNT);
        const marks = fields.filter((mark, at) => at % 2 === 0 && mark !== ALL);
        const groups = marks.filter((mark) => mark.startsWith(GROUP)).map((mark) => mark.slice(GROUP.length));
        yield { rollouts: marks.filter((mark) => !mark.startsWith(GROUP)), groups };
        cursor = next;
      } while (cursor !== '0');
    },
    epoch: async () => Number(await redis.get(keys.cancelEpoch)),
  };
}
