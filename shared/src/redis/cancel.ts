/** Cancelling: marks with a reason per run and one epoch number that workers poll, so that one GET a second covers all runs. */
import type { Redis } from 'ioredis';
import { byRun, parseRolloutId } from '../records/ids.ts';
import { type CancelReason, reasonOf } from '../records/result.ts';
import type { Keys } from './keys.ts';

/** Cancelling does nothing for a run that is gone, and keeps the reason of what is already cancelled. */
export type Cancel = {
  cancelRun(runId: string, reason?: CancelReason): Promise<void>;
  /** Cancels the rollouts of one instance, also those that are opened later. */
  cancelGroup(runId: string, instanceId: string, reason?: CancelReason): Promise<void>;
  cancelRollouts(rolloutIds: readonly string[], reason?: CancelReason): Promise<void>;
  /** Those of the given rollouts that are cancelled, by name, with their group or with their run; and why. */
  isCancelled(rolloutIds: readonly string[]): Promise<Map<string, CancelReason>>;
  /** Why the whole run was cancelled; null: it was not. */
  runCancelled(runId: string): Promise<CancelReason | null>;
  /** Rollouts and instances of the run that were cancelled by name, some hundred at once: as many as marks, however large the run. */
  markParts(runId: string): AsyncGenerator<{ rollouts: string[]; groups: string[] }>;
  /** Grows with every cancel; ask `isCancelled` only when it changed. */
  epoch(): Promise<number>;
};

const ALL = '*';

/** The mark of a group; its blank distinguishes it from a rollout id. */
const GROUP = 'group ';
const groupMark = (instanceId: string): string => `${GROUP}${instanceId}`;
/** Marks read at once. */
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
