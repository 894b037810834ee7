/** Cancellation: marks with a reason in each run, and one epoch number that workers poll. */
import type { Redis } from 'ioredis';
import { byRun, parseRolloutId } from '../records/ids.ts';
import { type CancelReason, reasonOf } from '../records/result.ts';
import type { Keys } from './keys.ts';

/** Cancellation ignores expired runs, and does not change earlier reasons. */
export type Cancel = {
  cancelRun(runId: string, reason?: CancelReason): Promise<void>;
  /** Cancels the rollouts of one instance, including later ones. */
  cancelGroup(runId: string, instanceId: string, reason?: CancelReason): Promise<void>;
  cancelRollouts(rolloutIds: readonly string[], reason?: CancelReason): Promise<void>;
  /** Returns the cancelled ones of these rollouts with reasons: by name, by group or by run. */
  isCancelled(rolloutIds: readonly string[]): Promise<Map<string, CancelReason>>;
  /** Returns why the whole run was cancelled; null: it was not. */
  runCancelled(runId: string): Promise<CancelReason | null>;
  /** Yields rollouts and instances cancelled by name, some hundred at a time. */
  markParts(runId: string): AsyncGenerator<{ rollouts: string[]; groups: string[] }>;
  /** Grows with every cancellation; call `isCancelled` only after a change. */
  epoch(): Promise<number>;
};

const ALL = '*';

/** Prefix of a group's mark; rollout ids contain no blank. */
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
