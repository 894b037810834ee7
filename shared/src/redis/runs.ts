/** Stores runs: the record, the compressed instances, and the patches for the agent `patch`. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual, promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import type { ArtifactStore } from '../artifacts/store.ts';
import { SwefarmError, UsageError } from '../failures/errors.ts';
import { MOST, tooMany } from '../records/bounds.ts';
import type { Instance } from '../records/instance.ts';
import { RunRecord, startedGroup } from '../records/job.ts';
import { problemOf, readRecord } from '../records/parse.ts';
import { Draw, mostGroups, startedGroups } from '../records/until.ts';
import type { Jobs } from './jobs.ts';
import { allRunKeys } from './keys.ts';
import { Part, type Store } from './part.ts';
import { classRange, QUEUES, sequenceAt } from './queue.ts';
import { readRuns, requireInstance, requireRun, type UnreadableRun } from './record.ts';

type Instances = Iterable<Instance> | AsyncIterable<Instance>;
type Patches = Iterable<readonly [ref: string, patch: string]>;
type Appending = 'appended' | 'differs' | 'full' | 'gone';

const BATCH = 200;
const compress = promisify(gzip);
const decompress = promisify(gunzip);

export class Runs extends Part {
  readonly #append = this.script('run_append');
  readonly #storeDraws = this.script('draws_store');
  readonly #artifacts: ArtifactStore;
  readonly #jobs: Jobs;

  constructor(store: Store, artifacts: ArtifactStore, jobs: Jobs) {
    super(store);
    this.#artifacts = artifacts;
    this.#jobs = jobs;
  }

  /**
   * Writes a run, or the missing parts of a run that was written partly. Of a run with `until`, `instances` are those of {@link storeDraws},
   * in order: the first groups are opened, and the commits of results open more.
   * @throws SwefarmError `run_differs` if another record has the id; UsageError `run_invalid` for an invalid or too large record
   */
  async create(given: RunRecord, instances: Instances, patches: Patches = []): Promise<void> {
    const record = checked(given, Array.isArray(instances) ? instances.length : 0);
    const stored = await this.get(record.run_id);
    if (stored && !isDeepStrictEqual(settingsOf(stored), settingsOf(record))) {
      throw new SwefarmError('run_differs', `run ${record.run_id} exists with other settings`);
    }
    await this.#writeInstances(record, instances);
    await this.#writePatches(record, patches);
    // The record is written last, so that every listed run is complete.
    const write = this.redis
      .multi()
      .set(this.keys.run(record.run_id).record, JSON.stringify(stored ?? record), 'EX', record.ttl);
    // Runs of sessions are not listed, because a trainer opens thousands.
    if (record.kind !== 'session') {
      write.zadd(this.keys.runs, Date.parse(stored?.created_at ?? record.created_at), record.run_id);
      write.sadd(this.keys.unfinished, record.run_id);
    }
    await write.exec();
  }

  /** Returns the record of a run; null: unknown or expired. Throws SwefarmError `run_unreadable`, `run_newer`. */
  async get(runId: string): Promise<RunRecord | null> {
    const text = await this.redis.get(this.keys.run(runId).record);
    return text === null ? null : requireRun(runId, text);
  }

  /**
   * Adds an instance to an open run; `farm.calls.open` opens rollouts. `differs`: the run has another instance with this id. `full`: the
   * run has the maximum number of instances. `gone`: the run has expired.
   */
  async append(runId: string, instance: Instance): Promise<Appending> {
    const of = this.keys.run(runId);
    const text = JSON.stringify(instance);
    const fingerprint = createHash('sha256').update(text).digest('base64url');
    const args = [instance.instance_id, await compress(text), fingerprint, MOST.instances];
    return (await this.#append([of.record, of.instances, of.appended], args)) as Appending;
  }

  /** Returns the id of the open run of this name; null: none. */
  async getOpen(name: string): Promise<string | null> {
    return await this.redis.get(this.keys.calls.openRun(name));
  }

  /** Makes `runId` the open run of this name for `seconds`, unless there is one. Returns the id of the open run. */
  async setOpen(name: string, runId: string, seconds: number): Promise<string> {
    await this.redis.set(this.keys.calls.openRun(name), runId, 'EX', seconds, 'NX');
    return (await this.getOpen(name)) ?? runId;
  }

  /** Returns an instance; null: unknown. Throws SwefarmError `instance_unreadable`, `instance_newer`. */
  async getInstance(runId: string, instanceId: string): Promise<Instance | null> {
    const blob = await this.redis.hgetBuffer(this.keys.run(runId).instances, instanceId);
    return blob === null ? null : await requireInstance(runId, instanceId, blob);
  }

  async getPatch(runId: string, ref: string): Promise<string | null> {
    const blob = await this.redis.hgetBuffer(this.keys.run(runId).patches, ref);
    return blob === null ? null : (await decompress(blob)).toString('utf8');
  }

  /** Stores the planned draws of a run with `until`, and returns the stored plan, which an earlier or concurrent submit may have written. */
  async storeDraws(
    { run_id, ttl, kind, until, group_size, dataset }: RunRecord,
    plan: readonly Draw[],
  ): Promise<Draw[]> {
    const of = this.keys.run(run_id);
    const first = await firstSequence(this.store, kind);
    const placed = plan.map((draw) => ({ ...draw, sequence: first + draw.sequence * group_size }));
    const texts = placed.map((draw) => JSON.stringify(draw));
    const opened = startedGroups({ until }, dataset.instances);
    await this.#storeDraws([of.draws, of.counts], [ttl, opened, ...texts]);
    return await this.draws(run_id);
  }

  /** Returns the planned draws of a run with `until`, in order. The run has opened the first `drawn` of its counts. */
  async draws(runId: string): Promise<Draw[]> {
    const texts = await this.redis.lrange(this.keys.run(runId).draws, 0, -1);
    return texts.map((text) => Draw.parse(JSON.parse(text)));
  }

  async instanceIds(runId: string): Promise<string[]> {
    return await this.redis.hkeys(this.keys.run(runId).instances);
  }

  /** Returns the readable runs, newest first. */
  async list(): Promise<RunRecord[]> {
    return (await this.#listed()).runs;
  }

  async unreadable(): Promise<UnreadableRun[]> {
    return (await this.#listed()).unreadable;
  }

  /** Returns whether the record of the run exists, even if it is unreadable. */
  async exists(runId: string): Promise<boolean> {
    return (await this.redis.exists(this.keys.run(runId).record)) === 1;
  }

  /** Removes all keys and artifacts of the run, and, while its record exists, its waiting jobs and its own API key. */
  async remove(runId: string): Promise<void> {
    const { redis, keys } = this;
    const text = await redis.get(keys.run(runId).record);
    if (text !== null) await this.#jobs.dropRun(runId);
    await this.#artifacts.removeRun(runId);
    const secret = text === null ? null : keyRefOf(text);
    const own = secret === runId || secret?.startsWith(`${runId}.`);
    await redis
      .multi()
      .del(...allRunKeys(keys, runId), ...(secret && own ? [keys.secret(secret)] : []))
      .zrem(keys.runs, runId)
      .srem(keys.unfinished, runId)
      .exec();
  }

  /** Reads the listed runs, newest first, and removes expired runs from the list. */
  async #listed(): Promise<{ runs: RunRecord[]; unreadable: UnreadableRun[] }> {
    const { redis, keys } = this;
    const ids = await redis.zrevrange(keys.runs, 0, -1);
    const texts = await Promise.all(ids.map((id) => redis.get(keys.run(id).record)));
    const expired = ids.filter((_, index) => texts[index] === null);
    if (expired.length > 0) {
      await redis
        .multi()
        .zrem(keys.runs, ...expired)
        .srem(keys.unfinished, ...expired)
        .exec();
    }
    return readRuns(ids, texts);
  }

  async #writeInstances(record: RunRecord, instances: Instances): Promise<void> {
    const of = this.keys.run(record.run_id);
    const size = startedGroup(record);
    let sequence = await firstSequence(this.store, record.kind);
    const opened =
      record.until === null ? Number.POSITIVE_INFINITY : startedGroups(record, record.dataset.instances);
    const draws = record.until === null ? [] : await this.draws(record.run_id);
    const drawn = new Map(draws.map((draw) => [draw.instance_id, draw.sequence]));
    let count = 0;
    let at = 0;
    for await (const batch of batches(instances)) {
      count += batch.length;
      const problem = tooMany(record, mostGroups(record, count));
      if (problem) throw invalid(record, problem);
      const blobs = await Promise.all(batch.map((instance) => compress(JSON.stringify(instance))));
      const write = this.redis.multi();
      for (const [index, { instance_id, image }] of batch.entries()) {
        write.hsetnx(of.instances, instance_id, blobs[index] ?? '');
        if (at++ >= opened) continue;
        write.hsetnx(of.groups, `${instance_id} left`, size);
        write.hsetnx(of.groups, `${instance_id} size`, size);
        write.hsetnx(of.groups, `${instance_id} sequence`, drawn.get(instance_id) ?? sequence);
        write.hsetnx(of.groups, `${instance_id} image`, image);
        sequence += record.group_size;
      }
      await write.expire(of.instances, record.ttl).expire(of.groups, record.ttl).exec();
    }
  }

  async #writePatches(record: RunRecord, patches: Patches): Promise<void> {
    const key = this.keys.run(record.run_id).patches;
    for await (const batch of batches(patches)) {
      const write = this.redis.multi();
      for (const [ref, patch] of batch) write.hsetnx(key, ref, await compress(patch));
      await write.expire(key, record.ttl).exec();
    }
  }
}

/** Returns the settings of a run, without its time, forecast and sizes of strata, which differ between two submits of the run. */
const settingsOf = ({ created_at, forecast, ...run }: RunRecord) => ({
  ...run,
  until: run.until && { ...run.until, strata: {} },
});

/** Returns the parsed record. Throws UsageError `run_invalid`. */
function checked(given: RunRecord, instances: number): RunRecord {
  const parsed = RunRecord.safeParse(given);
  const problem = parsed.success
    ? tooMany(parsed.data, mostGroups(parsed.data, instances))
    : problemOf(parsed.error);
  if (parsed.success && problem === null) return parsed.data;
  throw invalid(given, problem);
}

const invalid = ({ run_id }: RunRecord, problem: string | null): UsageError =>
  new UsageError(`invalid run ${run_id}: ${problem}`, { code: 'run_invalid' });

/** Returns the first sequence number of a new run: that of the first waiting job of the class, so that runs of a class alternate. */
export async function firstSequence(
  { redis, keys }: Pick<Store, 'redis' | 'keys'>,
  kind: RunRecord['kind'],
): Promise<number> {
  const [first, last] = classRange(kind === 'session' ? 'validation' : kind);
  const queue = keys.queue(QUEUES[0], 'prioritized');
  const [, score] = await redis.zrangebyscore(queue, first, last, 'WITHSCORES', 'LIMIT', 0, 1);
  return score === undefined ? 0 : sequenceAt(kind, Number(score));
}

const KeyRef = z.object({ policy: z.object({ api_key_ref: z.string().nullish() }).nullish() });

/** Returns the name of the API key, even from an unreadable record, so that the key can be removed with the run; null: none. */
function keyRefOf(text: string): string | null {
  const read = readRecord(KeyRef, text);
  return 'value' in read ? (read.value.policy?.api_key_ref ?? null) : null;
}

async function* batches<T>(items: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
