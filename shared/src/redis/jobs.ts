/** Makes the jobs of rollouts from the records of the run, so that any process can queue a missing job. */
import { SwefarmError } from '../failures/errors.ts';
import { sizeOf } from '../records/bounds.ts';
import { parseRolloutId } from '../records/ids.ts';
import type { RolloutJob, RunRecord } from '../records/job.ts';
import { POLICY_HEADERS } from '../records/needs.ts';
import { readRecord } from '../records/parse.ts';
import { RolloutPolicy } from '../records/runconfig.ts';
import { refusedByRedis } from './outage.ts';
import { pairsIn } from './pairs.ts';
import { Part } from './part.ts';
import { priorityOf, QUEUES } from './queue.ts';

const BATCH = 500;
/** Factor of the score of a delayed job in BullMQ: the score is the due time in ms times this number, plus a counter. */
const DELAYED_SCALE = 4096;
/** States of BullMQ jobs that are stored in sorted sets, then states that are stored in lists. */
const SORTED = ['prioritized', 'delayed', 'failed', 'completed'] as const;
const LISTED = ['wait', 'paused', 'active'] as const;

export class Jobs extends Part {
  /**
   * Adds jobs for these rollouts; existing jobs stay unchanged. If the policy of a rollout is damaged or of another version, adds no job for
   * it: the policy of the run would sample it elsewhere. Adds the other jobs, then throws SwefarmError `policy_unreadable`.
   */
  async enqueue(run: Pick<RunRecord, 'run_id' | 'kind'>, rolloutIds: readonly string[]): Promise<void> {
    const { redis } = this;
    const names = rolloutIds.map((id) => ({ id, ...parseRolloutId(id) }));
    const of = this.keys.run(run.run_id);
    const instanceIds = [...new Set(names.map(({ instanceId }) => instanceId))];
    if (instanceIds.length === 0) return;
    const [sequences, images, refs, { policies, problems }] = await Promise.all([
      redis.hmget(of.groups, ...instanceIds.map((id) => `${id} sequence`)),
      redis.hmget(of.groups, ...instanceIds.map((id) => `${id} image`)),
      redis.hkeys(of.patches),
      this.#policiesOf(run.run_id, rolloutIds),
    ]);
    const sequenceOf = new Map(instanceIds.map((id, at) => [id, sizeOf(sequences[at]) ?? 0]));
    const imageOf = new Map(instanceIds.map((id, at) => [id, images[at]]));
    // References of patches have the form `instance.number`.
    const patchesOf = Map.groupBy(refs, (ref) => ref.slice(0, ref.lastIndexOf('.')));
    const now = await this.store.clock.ask();
    const readable = names.filter(({ id }) => !problems.has(id));
    const jobs = readable.map(({ id, instanceId, index }) => {
      const patches = patchesOf.get(instanceId)?.length;
      const image = imageOf.get(instanceId);
      const policy = policies.get(id);
      const data: RolloutJob = {
        rollout_id: id,
        run_id: run.run_id,
        instance_id: instanceId,
        rollout_index: index,
        submitted_at: now,
        ...(image ? { image } : {}),
        ...(patches ? { patch_ref: `${instanceId}.${index % patches}` } : {}),
        ...(policy ? { policy, needs: POLICY_HEADERS } : {}),
      };
      const priority = priorityOf(run.kind, sequenceOf.get(instanceId) ?? 0);
      return { name: 'rollout', data, opts: { jobId: id, priority, timestamp: now } };
    });
    for (let at = 0; at < jobs.length; at += BATCH)
      await this.store.queue().addBulk(jobs.slice(at, at + BATCH));
    const [first] = problems;
    if (!first) return;
    const others = problems.size > 1 ? `, and ${problems.size - 1} more` : '';
    const message = `the policy of rollout ${first[0]} is unreadable${others}: ${first[1]}; cancel it, or start a newer version`;
    throw new SwefarmError('policy_unreadable', message);
  }

  /** Returns the changes of a rollout to the policy of its run; null if there are none or the record is unreadable. */
  async policyOf(rolloutId: string): Promise<RolloutPolicy | null> {
    const { policies } = await this.#policiesOf(parseRolloutId(rolloutId).runId, [rolloutId]);
    return policies.get(rolloutId) ?? null;
  }

  /** Returns the changes of these rollouts to the policy of their run, and why others are unreadable. Omits rollouts without changes. */
  async #policiesOf(runId: string, rolloutIds: readonly string[]) {
    const found = { policies: new Map<string, RolloutPolicy>(), problems: new Map<string, string>() };
    const { policies } = this.keys.run(runId);
    if ((await this.redis.exists(policies)) === 0) return found;
    const texts = await this.redis.hmget(policies, ...rolloutIds);
    for (const [at, id] of rolloutIds.entries()) {
      const text = texts[at];
      if (!text) continue;
      const read = readRecord(RolloutPolicy, text);
      if ('value' in read) found.policies.set(id, read.value);
      else found.problems.set(id, read.problem);
    }
    return found;
  }

  /** Returns rollouts that have no job. Removes ended jobs, which are a bug, and returns their rollouts too. */
  async missing(rolloutIds: readonly string[]): Promise<string[]> {
    const missing: string[] = [];
    for (let at = 0; at < rolloutIds.length; at += BATCH) {
      missing.push(...(await this.#missingOf(rolloutIds.slice(at, at + BATCH))));
    }
    return missing;
  }

  async #missingOf(rolloutIds: readonly string[]): Promise<string[]> {
    const read = this.redis.pipeline();
    for (const id of rolloutIds) read.hmget(this.#key(id), 'timestamp', 'finishedOn');
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
    await this.drop(ended);
    return [...gone, ...ended];
  }

  /** Makes jobs due, at most 500, that are delayed by more than `mostMs` because a clock was wrong. Returns their ids. */
  async hasten(mostMs: number): Promise<string[]> {
    const from = ((await this.store.clock.ask()) + mostMs) * DELAYED_SCALE;
    const ids = await this.redis.zrangebyscore(this.#key('delayed'), from, '+inf', 'LIMIT', 0, BATCH);
    await this.promote(ids);
    return ids;
  }

  /** Makes delayed jobs due, and does not change jobs in other states. Returns the rollouts that have no job. */
  async promote(rolloutIds: readonly string[]): Promise<string[]> {
    const gone: string[] = [];
    const promote = async (id: string): Promise<void> => {
      const job = await this.store.queue().getJob(id);
      if (job) await job.promote();
      else gone.push(id);
    };
    for (let at = 0; at < rolloutIds.length; at += BATCH)
      await Promise.all(rolloutIds.slice(at, at + BATCH).map((id) => promote(id).catch(unlessRefused)));
    return gone;
  }

  /** Removes the jobs of these rollouts, except jobs that a worker runs. */
  async drop(rolloutIds: readonly string[]): Promise<void> {
    for (let at = 0; at < rolloutIds.length; at += BATCH) {
      await Promise.all(rolloutIds.slice(at, at + BATCH).map((id) => this.store.queue().remove(id)));
    }
  }

  /**
   * Removes all jobs of a run, except jobs that a worker runs; those rollouts end when they find that the run is gone. Searches the queue,
   * because the records of the run may be damaged.
   */
  async dropRun(runId: string): Promise<void> {
    for await (const ids of this.#queued()) await this.drop(ids.filter((id) => id.startsWith(`${runId}.`)));
  }

  /** Yields the ids of the jobs of the queue in all states. */
  async *#queued(): AsyncGenerator<string[]> {
    for (const state of SORTED) {
      const stream = this.redis.zscanStream(this.#key(state), { count: BATCH });
      for await (const pairs of pairsIn(stream)) yield pairs.map(([id]) => id);
    }
    for (const state of LISTED) {
      // The lists are read from the end, so that removals do not shift jobs that are not read yet.
      for (let end = await this.redis.llen(this.#key(state)); end > 0; end -= BATCH) {
        yield await this.redis.lrange(this.#key(state), Math.max(0, end - BATCH), end - 1);
      }
    }
  }

  #key(part: string): string {
    return this.keys.queue(QUEUES[0], part);
  }
}

/** Rethrows refusals of Redis, so that the caller retries. Other errors of BullMQ mean that the state of the job changed. */
function unlessRefused(error: unknown): void {
  if (refusedByRedis(error)) throw error;
}
