/** Stores runs: the record, the compressed instances, and the patches for the agent `patch`. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual, promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { ArtifactStore } from '../artifacts/store.ts';
import { SwefarmError, UsageError } from '../failures/errors.ts';
import { MOST, tooMany } from '../records/bounds.ts';
import type { Instance } from '../records/instance.ts';
import { type RolloutJob, RunRecord, startedGroup } from '../records/job.ts';
import { problemOf, readRecord } from '../records/parse.ts';
import type { Clock } from './clock.ts';
import { createJobs } from './jobs.ts';
import { allRunKeys, type Keys } from './keys.ts';
import { classRange, QUEUES, sequenceAt } from './queue.ts';
import { readRun, requireInstance, requireRun, type UnreadableRun } from './record.ts';
import { loadScript } from './script.ts';

export type Runs = {
  /**
   * Writes a run, or the missing parts of a run that was written partly.
   * @throws SwefarmError `run_differs` if another record has the id; UsageError `run_invalid` for a record above its bounds
   */
  create(
    record: RunRecord,
    instances: Iterable<Instance> | AsyncIterable<Instance>,
    patches?: Iterable<readonly [ref: string, patch: string]>,
  ): Promise<void>;
  /** Returns the record of a run; null: expired. Throws SwefarmError `run_unreadable`, `run_newer`. */
  get(runId: string): Promise<RunRecord | null>;
  /**
   * Adds an instance to an open run; `farm.calls.open` opens rollouts. `differs`: the run has another instance with this id. `full`: the
   * run has the maximum number of instances. `gone`: the run has expired.
   */
  append(runId: string, instance: Instance): Promise<'appended' | 'differs' | 'full' | 'gone'>;
  /** Returns the open run of this name; null: none. */
  getOpen(name: string): Promise<string | null>;
  /** Makes `runId` the open run of this name for `seconds`, unless there is one. Returns the id of the open run. */
  setOpen(name: string, runId: string, seconds: number): Promise<string>;
  /** Returns an instance; null: unknown. Throws SwefarmError `instance_unreadable`, `instance_newer`. */
  getInstance(runId: string, instanceId: string): Promise<Instance | null>;
  getPatch(runId: string, ref: string): Promise<string | null>;
  instanceIds(runId: string): Promise<string[]>;
  /** Returns the readable runs, newest first. */
  list(): Promise<RunRecord[]>;
  unreadable(): Promise<UnreadableRun[]>;
  /** Returns whether the record of the run exists, even if it is unreadable. */
  exists(runId: string): Promise<boolean>;
  /** Removes all keys, artifacts and waiting jobs of the run. */
  remove(runId: string): Promise<void>;
};

export type RunsDeps = {
  redis: Redis;
  keys: Keys;
  clock: Clock;
  artifacts: ArtifactStore;
  queue: () => Queue<RolloutJob>;
};

const BATCH = 200;
const compress = promisify(gzip);
const decompress = promisify(gunzip);

export function createRuns(deps: RunsDeps): Runs {
  const { redis, keys } = deps;
  const append = loadScript(redis, 'run_append');
  return {
    get: (runId) => readRecordOf(deps, runId),
    create: (record, instances, patches = []) => createRun(deps, record, instances, patches),
    async append(runId, instance) {
      const of = keys.run(runId);
      const text = JSON.stringify(instance);
      const fingerprint = createHash('sha256').update(text).digest('base64url');
      return (await append(
        [of.record, of.instances, of.appended],
        [instance.instance_id, await compress(text), fingerprint, MOST.instances],
      )) as 'appended' | 'differs' | 'full' | 'gone';
    },
    getOpen: (name) => redis.get(keys.calls.openRun(name)),
    async setOpen(name, runId, seconds) {
      await redis.set(keys.calls.openRun(name), runId, 'EX', seconds, 'NX');
      return (await redis.get(keys.calls.openRun(name))) ?? runId;
    },
    async getInstance(runId, instanceId) {
      const blob = await redis.hgetBuffer(keys.run(runId).instances, instanceId);
      return blob === null ? null : await requireInstance(runId, instanceId, blob);
    },
    async getPatch(runId, ref) {
      const blob = await redis.hgetBuffer(keys.run(runId).patches, ref);
      return blob === null ? null : (await decompress(blob)).toString('utf8');
    },
    instanceIds: (runId) => redis.hkeys(keys.run(runId).instances),
    list: async () => (await readListed(deps)).flatMap((read) => ('run' in read ? [read.run] : [])),
    unreadable: async () =>
      (await readListed(deps)).flatMap((read) => ('unreadable' in read ? [read.unreadable] : [])),
    exists: async (runId) => (await redis.exists(keys.run(runId).record)) === 1,
    remove: (runId) => removeRun(deps, runId),
  };
}

async function readRecordOf({ redis, keys }: RunsDeps, runId: string): Promise<RunRecord | null> {
  const text = await redis.get(keys.run(runId).record);
  return text === null ? null : requireRun(runId, text);
}

async function createRun(
  deps: RunsDeps,
  given: RunRecord,
  instances: Iterable<Instance> | AsyncIterable<Instance>,
  patches: Iterable<readonly [ref: string, patch: string]>,
): Promise<void> {
  const { redis, keys } = deps;
  const record = checked(given, Array.isArray(instances) ? instances.length : 0);
  const stored = await readRecordOf(deps, record.run_id);
  if (stored && !isDeepStrictEqual({ ...stored, created_at: '' }, { ...record, created_at: '' })) {
    throw new SwefarmError('run_differs', `run ${record.run_id} exists with other settings`);
  }
  await writeInstances(deps, record, instances);
  await writePatches(deps, record, patches);
  // The record is written last, so that every listed run is complete.
  const write = redis
    .multi()
    .set(keys.run(record.run_id).record, JSON.stringify(stored ?? record), 'EX', record.ttl);
  // Runs of sessions are not listed, because a trainer opens thousands.
  if (record.kind !== 'session') {
    write.zadd(keys.runs, Date.parse(stored?.created_at ?? record.created_at), record.run_id);
    write.sadd(keys.unfinished, record.run_id);
  }
  await write.exec();
}

/** Returns the listed runs, newest first, and removes expired runs from the list. */
async function readListed({ redis, keys }: RunsDeps): Promise<ReturnType<typeof readRun>[]> {
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
  return ids.flatMap((id, index) => {
    const text = texts[index];
    return text ? [readRun(id, text)] : [];
  });
}

async function removeRun({ redis, keys, clock, queue, artifacts }: RunsDeps, runId: string): Promise<void> {
  const text = await redis.get(keys.run(runId).record);
  if (text !== null) await createJobs(redis, keys, clock, queue).dropRun(runId);
  await artifacts.removeRun(runId);
  const secret = text === null ? null : keyRefOf(text);
  const own = secret === runId || secret?.startsWith(`${runId}.`);
  await redis
    .multi()
    .del(...allRunKeys(keys, runId), ...(secret && own ? [keys.secret(secret)] : []))
    .zrem(keys.runs, runId)
    .srem(keys.unfinished, runId)
    .exec();
}

/** Returns the parsed record. Throws UsageError `run_invalid`. */
function checked(given: RunRecord, instances: number): RunRecord {
  const parsed = RunRecord.safeParse(given);
  const problem = parsed.success ? tooMany(parsed.data, instances) : problemOf(parsed.error);
  if (parsed.success && problem === null) return parsed.data;
  throw new UsageError(`invalid run ${given.run_id}: ${problem}`, { code: 'run_invalid' });
}

async function writeInstances(
  deps: RunsDeps,
  record: RunRecord,
  instances: Iterable<Instance> | AsyncIterable<Instance>,
): Promise<void> {
  const { redis, keys } = deps;
  const of = keys.run(record.run_id);
  const size = startedGroup(record);
  let sequence = await firstSequence(deps, record.kind);
  let count = 0;
  for await (const batch of batches(instances)) {
    count += batch.length;
    const problem = tooMany(record, count);
    if (problem) throw new UsageError(`invalid run ${record.run_id}: ${problem}`, { code: 'run_invalid' });
    const blobs = await Promise.all(batch.map((instance) => compress(JSON.stringify(instance))));
    const write = redis.multi();
    for (const [index, { instance_id, image }] of batch.entries()) {
      write.hsetnx(of.instances, instance_id, blobs[index] ?? '');
      write.hsetnx(of.groups, `${instance_id} left`, size);
      write.hsetnx(of.groups, `${instance_id} size`, size);
      write.hsetnx(of.groups, `${instance_id} sequence`, sequence);
      write.hsetnx(of.groups, `${instance_id} image`, image);
      sequence += record.group_size;
    }
    await write.expire(of.instances, record.ttl).expire(of.groups, record.ttl).exec();
  }
}

/** Returns the first sequence number of a new run: that of the first waiting job of the class, so that runs of a class alternate. */
export async function firstSequence(
  { redis, keys }: Pick<RunsDeps, 'redis' | 'keys'>,
  kind: RunRecord['kind'],
): Promise<number> {
  const [first, last] = classRange(kind === 'session' ? 'validation' : kind);
  const [, score] = await redis.zrangebyscore(
    keys.queue(QUEUES[0], 'prioritized'),
    first,
    last,
    'WITHSCORES',
    'LIMIT',
    0,
    1,
  );
  return score === undefined ? 0 : sequenceAt(kind, Number(score));
}

async function writePatches(
  { redis, keys }: RunsDeps,
  record: RunRecord,
  patches: Iterable<readonly [ref: string, patch: string]>,
): Promise<void> {
  const key = keys.run(record.run_id).patches;
  for await (const batch of batches(patches)) {
    const write = redis.multi();
    for (const [ref, patch] of batch) write.hsetnx(key, ref, await compress(patch));
    await write.expire(key, record.ttl).exec();
  }
}

/** Returns the name of the API key, even from an unreadable record, so that the key can be removed with the run. */
function keyRefOf(text: string): string | null {
  const read = readRecord(KeyRef, text);
  return 'value' in read ? (read.value.policy?.api_key_ref ?? null) : null;
}

const KeyRef = z.object({ policy: z.object({ api_key_ref: z.string().nullish() }).nullish() });

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
