/** Makes farms with their own prefix, records and results, for tests with a real Redis. */
import { bareInstance, bareResult, bareRun } from '@swefarm/testkit';
import { expect, onTestFinished } from 'vitest';
import type { CommonConfig } from '../src/config/keys.ts';
import {
  type AttemptName,
  type Farm,
  type Instance,
  loadConfig,
  NO_SECONDS,
  newId,
  openFarm,
  type Result,
  type RunRecord,
  type WorkerRecord,
} from '../src/index.ts';

export const redisUrl = (): string => {
  const url = process.env.SWEFARM_TEST_REDIS_URL;
  if (!url) throw new Error('SWEFARM_TEST_REDIS_URL is set by testkit/src/vitest/redis.ts');
  return url;
};

export function testConfig(flags: Record<string, unknown> = {}): CommonConfig {
  return loadConfig('worker', {
    env: {},
    flags: { redis_url: redisUrl(), redis_prefix: `t-${newId()}`, ...flags },
  });
}

export const testFarm = (flags: Record<string, unknown> = {}): Promise<Farm> =>
  openFarm(testConfig(flags), 'producer');

export const nth = (attempt: number): AttemptName => ({ attempt, claim: `claim${attempt}` });

/** Claims a rollout as a worker; throws if the claim opens no attempt. */
export async function claimed(farm: Farm, rolloutId: string, worker = 'w1'): Promise<AttemptName> {
  const claim = await farm.journal.claim(rolloutId, { worker, node: `node-${worker}` });
  if (claim.status !== 'claimed') throw new Error(`${rolloutId}: ${claim.status}`);
  return { attempt: claim.attempt, claim: claim.claim };
}

export const testRun = bareRun;

export const testInstance = (instance_id = 'a__b.c-1'): Instance =>
  bareInstance({ instance_id, problem_statement: 'ü '.repeat(2000) });

/** Opens a farm with a run of one instance, until the test ends. `id`: id of a rollout. */
export async function openRun(change: Partial<RunRecord> = {}) {
  const farm = await testFarm();
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const run = testRun(change);
  await farm.runs.create(run, [testInstance()]);
  const id = (index: number): string => `${run.run_id}.a__b.c-1.${index}`;
  return { farm, run, id };
}

export const testWorker = (change: Partial<WorkerRecord> = {}): WorkerRecord => ({
  worker: 'w',
  node: 'n',
  runtime: 'rootfs',
  slots: 4,
  active: 1,
  started_at: 1,
  metrics: null,
  paused: null,
  ...change,
});

export const testResult = (run_id: string, index: number, change: Partial<Result> = {}): Result =>
  bareResult({
    ...{ run_id, instance_id: 'a__b.c-1', rollout_index: index, reward_row: 'judged', turns: 7 },
    tokens: { prompt: 100, completion: 10 },
    seconds: { ...NO_SECONDS, queued: 0.1234567, agent: 1, total: 2 },
    ...change,
  });

/** Expects that a promise rejects with an error of this code, and with a message that matches. */
export const refused = (promise: Promise<unknown>, code: string, message = /^/) =>
  expect(promise).rejects.toMatchObject({ code, message: expect.stringMatching(message) });

/** Names of all keys under the farm's prefix. */
export async function keysOf(config: CommonConfig): Promise<string[]> {
  return Object.keys(await mortal(config));
}

/** All keys under the farm's prefix, and whether each has a life time. */
export async function mortal(config: CommonConfig): Promise<Record<string, boolean>> {
  const { connectRedis } = await import('../src/redis/connect.ts');
  const { redis } = await connectRedis(config, 'producer');
  const keys = (await redis.keys(`${config.redis_prefix}:*`)).sort();
  const lives = await Promise.all(keys.map((key) => redis.ttl(key)));
  redis.disconnect();
  return Object.fromEntries(
    keys.map((key, at) => [key.slice(config.redis_prefix.length + 1), (lives[at] ?? -1) > 0]),
  );
}
