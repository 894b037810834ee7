/** Cancels rollouts. Each run has marks with reasons, and workers poll one number (the epoch) that each cancellation increments. */
import { byRun, parseRolloutId } from '../records/ids.ts';
import { type CancelReason, reasonOf } from '../records/result.ts';
import { pairsIn } from './pairs.ts';
import { Part } from './part.ts';

const ALL = '*';

/** Prefix of the mark of a group. Ids of rollouts contain no blank, so these marks differ. */
const GROUP = 'group ';
const SCAN_COUNT = 500;

/** Expired runs are ignored, and the first reason of a cancellation does not change. */
export class Cancel extends Part {
  async cancelRun(runId: string, reason: CancelReason = 'cancelled'): Promise<void> {
    await this.#mark(runId, [ALL], reason);
  }

  /** Cancels the rollouts of one instance, including rollouts that are added later. */
  async cancelGroup(runId: string, instanceId: string, reason: CancelReason = 'cancelled'): Promise<void> {
    await this.#mark(runId, [GROUP + instanceId], reason);
  }

  async cancelRollouts(rolloutIds: readonly string[], reason: CancelReason = 'cancelled'): Promise<void> {
    for (const [runId, ids] of byRun(rolloutIds)) await this.#mark(runId, ids, reason);
  }

  async #mark(runId: string, marks: readonly string[], reason: CancelReason): Promise<void> {
    const of = this.keys.run(runId);
    const lifeMs = await this.redis.pttl(of.record);
    if (lifeMs < 0) return;
    const write = this.redis.multi();
    for (const mark of marks) write.hsetnx(of.cancelled, mark, reason);
    await write.pexpire(of.cancelled, lifeMs).incr(this.keys.cancelEpoch).exec();
  }

  /** Returns which of these rollouts are cancelled, with reasons: the rollout, its group or its run is marked. */
  async isCancelled(rolloutIds: readonly string[]): Promise<Map<string, CancelReason>> {
    const cancelled = new Map<string, CancelReason>();
    for (const [runId, ids] of byRun(rolloutIds)) {
      const groups = ids.map((id) => GROUP + parseRolloutId(id).instanceId);
      const [all, ...each] = await this.redis.hmget(this.keys.run(runId).cancelled, ALL, ...ids, ...groups);
      for (const [index, id] of ids.entries()) {
        const reason = each[index] ?? each[ids.length + index] ?? all;
        if (reason) cancelled.set(id, reasonOf(reason));
      }
    }
    return cancelled;
  }

  /** Returns why the whole run was cancelled; null: the run was not cancelled as a whole. */
  async runCancelled(runId: string): Promise<CancelReason | null> {
    const reason = await this.redis.hget(this.keys.run(runId).cancelled, ALL);
    return reason === null ? null : reasonOf(reason);
  }

  /** Yields the cancelled rollouts and instances of a run, about 500 at a time; ignores the cancellation of the whole run. */
  async *markParts(runId: string): AsyncGenerator<{ rollouts: string[]; groups: string[] }> {
    const stream = this.redis.hscanStream(this.keys.run(runId).cancelled, { count: SCAN_COUNT });
    for await (const pairs of pairsIn(stream)) {
      const marks = pairs.map(([mark]) => mark).filter((mark) => mark !== ALL);
      const groups = marks.filter((mark) => mark.startsWith(GROUP)).map((mark) => mark.slice(GROUP.length));
      yield { rollouts: marks.filter((mark) => !mark.startsWith(GROUP)), groups };
    }
  }

  /** Returns a number that each cancellation increments; call `isCancelled` only after a change. */
  async epoch(): Promise<number> {
    return Number(await this.redis.get(this.keys.cancelEpoch));
  }
}
