/** Stores the groups (opened rollouts, rollouts without a result) and pauses of runs. A commit may open rollouts to replace failed ones. */
import { z } from 'zod';
import { UsageError } from '../failures/errors.ts';
import { MOST } from '../records/bounds.ts';
import { byRun, parseRolloutId, rolloutId } from '../records/ids.ts';
import type { RunRecord } from '../records/job.ts';
import { readRuns, type UnreadableRun } from './record.ts';
import type { Results } from './results.ts';
import { RolloutLists } from './rollouts.ts';

export const RunPause = z.object({
  /** Reason of the pause; null: the run is not paused. */
  reason: z.string().nullable(),
  /** Time of the pause or resume in milliseconds since the epoch. */
  at: z.number(),
  /** Time of the automatic resume, in milliseconds since the epoch; absent: never. */
  ends_at: z.number().optional(),
  /** Counts at the last resume; earlier failures do not pause the run again. */
  since: z
    .object({
      committed: z.number(),
      failures: z.record(z.string(), z.number()),
      answers: z.number(),
      unread: z.record(z.string(), z.number()),
    })
    .nullable(),
});
export type RunPause = z.infer<typeof RunPause>;

const BATCH = 500;

export class Groups extends RolloutLists {
  readonly #add = this.script('group_add');
  readonly #done = this.script('group_done');
  readonly #pause = this.script('run_pause');
  readonly #retire = this.script('run_retire');

  /**
   * Returns runs that may have rollouts without a result, and the time of Redis in milliseconds. `unreadable`: runs whose records are
   * damaged or of a newer version.
   */
  async unfinishedRuns(): Promise<{ now: number; runs: RunRecord[]; unreadable: UnreadableRun[] }> {
    const { redis, keys } = this;
    const [ids, now] = await Promise.all([redis.smembers(keys.unfinished), this.store.clock.ask()]);
    const texts = ids.length === 0 ? [] : await redis.mget(ids.map((id) => keys.run(id).record));
    const gone = ids.filter((_, index) => texts[index] === null);
    if (gone.length > 0) await redis.srem(keys.unfinished, ...gone);
    return { now, ...readRuns(ids, texts) };
  }

  /** Opens `count` more rollouts of an instance and returns their ids, none if the run expired. The caller queues their jobs. */
  async add(runId: string, instanceId: string, count: number): Promise<string[]> {
    if (!Number.isInteger(count) || count < 1 || count > MOST.group) {
      throw new UsageError(`${count} more rollouts: expected a whole number from 1 to ${MOST.group}`);
    }
    const of = this.keys.run(runId);
    const names = [of.record, of.groups, this.keys.unfinished];
    const size = Number(await this.#add(names, [runId, instanceId, count]));
    if (size === 0) return [];
    return Array.from({ length: count }, (_, index) => rolloutId(runId, instanceId, size - count + index));
  }

  /** Closes rollouts whose results are in an output outside of Redis. Closing a rollout twice has no effect. */
  async markDoneElsewhere(rolloutIds: readonly string[]): Promise<void> {
    await this.#change('close', rolloutIds);
  }

  /** Reverses {@link markDoneElsewhere}. */
  async reopen(rolloutIds: readonly string[]): Promise<void> {
    await this.#change('open', rolloutIds);
  }

  async #change(change: 'close' | 'open', rolloutIds: readonly string[]): Promise<void> {
    for (const [runId, ids] of byRun(rolloutIds)) {
      const of = this.keys.run(runId);
      const names = [of.record, of.committed, of.groups, this.keys.unfinished];
      for (let at = 0; at < ids.length; at += BATCH) {
        const pairs = ids.slice(at, at + BATCH).flatMap((id) => [id, parseRolloutId(id).instanceId]);
        await this.#done(names, [runId, change, ...pairs]);
      }
    }
  }

  /** Removes the run from the unfinished runs; false if a rollout has no result yet. */
  async retire(runId: string): Promise<boolean> {
    return (await this.#retire([this.keys.run(runId).groups, this.keys.unfinished], [runId])) === 1;
  }

  /**
   * Stops claims of the run until {@link resume}. Returns false if the run is paused or expired, or was resumed since `known`, an earlier
   * result of {@link paused}. @param lastsMs time until the automatic resume; absent: a user resumes the run
   */
  async pause(runId: string, reason: string, known?: RunPause | null, lastsMs?: number): Promise<boolean> {
    const { record, paused } = this.keys.run(runId);
    const at = known === undefined ? '*' : (known?.at ?? '');
    return (await this.#pause([record, paused], [reason, at, lastsMs ?? ''])) === 1;
  }

  /** Resumes the run. @param since present counts of the run */
  async resume(runId: string, since: RunPause['since']): Promise<void> {
    const { record, paused } = this.keys.run(runId);
    const lifeMs = await this.redis.pttl(record);
    if (lifeMs < 0) return;
    const pause: RunPause = { reason: null, at: await this.store.clock.ask(), since };
    await this.redis.set(paused, JSON.stringify(pause), 'PX', lifeMs);
  }

  async paused(runId: string): Promise<RunPause | null> {
    const text = await this.redis.get(this.keys.run(runId).paused);
    return text === null ? null : RunPause.parse(JSON.parse(text));
  }
}

/** Resumes a paused run. Failures before this time do not pause the run again. */
export async function resumeRun(
  farm: { groups: Pick<Groups, 'resume'>; results: Pick<Results, 'counts'> },
  runId: string,
): Promise<void> {
  const { committed, failures, answers, unread } = await farm.results.counts(runId);
  await farm.groups.resume(runId, { committed, failures, answers, unread });
}
