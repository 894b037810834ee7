/** Redis refuses writes while rollouts end: a failover, a full memory, a failed save. Verdicts are committed unchanged. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLog, type Farm, freePort, loadConfig, newId, openFarm } from '@swefarm/shared';
import {
  bareFacts,
  bareInstance,
  bareRun,
  bareTrajectory,
  startRedis,
  type TestRedis,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Judged, Task } from '../src/rollout/context.ts';
import { openNode, submitOne } from './attempts.ts';
import { emptyRuntime, noThreads, simulateWorker } from './simulated.ts';

let redis: TestRedis;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder('refused');
  redis = await startRedis({ dir: join(folder, 'redis') });
});
afterAll(async () => {
  await redis[Symbol.asyncDispose]();
});

const cli = (...words: string[]): Promise<string> => redis.cli(...words);
const set = (...pairs: string[]): Promise<string> => cli('CONFIG', 'SET', ...pairs);

type Refusal = { name: string; error: RegExp; begin(): Promise<unknown>; end(): Promise<unknown> };
const NO_REPLICAS: Refusal = {
  name: 'too few replicas',
  error: /NOREPLICAS/,
  begin: () => set('min-replicas-to-write', '1'),
  end: () => set('min-replicas-to-write', '0'),
};
const REFUSALS: Refusal[] = [
  NO_REPLICAS,
  { name: 'no memory', error: /OOM/, begin: () => set('maxmemory', '1'), end: () => set('maxmemory', '0') },
  {
    name: 'it leads no more',
    error: /READONLY/,
    begin: async () => cli('REPLICAOF', '127.0.0.1', String(await freePort())),
    end: () => cli('REPLICAOF', 'NO', 'ONE'),
  },
  {
    name: 'it has lost its leader',
    error: /MASTERDOWN/,
    async begin() {
      await set('replica-serve-stale-data', 'no');
      await cli('REPLICAOF', '127.0.0.1', String(await freePort()));
    },
    async end() {
      await cli('REPLICAOF', 'NO', 'ONE');
      await set('replica-serve-stale-data', 'yes');
    },
  },
  {
    name: 'it could not save',
    error: /MISCONF/,
    async begin() {
      await mkdir(join(folder, 'redis', 'dump.rdb', 'in-the-way'), { recursive: true });
      await set('save', '3600 1', 'stop-writes-on-bgsave-error', 'yes');
      await cli('BGSAVE');
      while (!(await cli('INFO', 'persistence')).includes('rdb_last_bgsave_status:err')) await sleep(20);
    },
    async end() {
      await set('save', '', 'stop-writes-on-bgsave-error', 'no');
      await rm(join(folder, 'redis', 'dump.rdb'), { recursive: true });
    },
  },
  {
    name: 'a script holds it up',
    error: /BUSY/,
    async begin() {
      await set('busy-reply-threshold', '20');
      void cli('EVAL', 'while true do end', '0').catch(() => undefined);
      while (!(await cli('PING')).includes('BUSY')) await sleep(20);
    },
    end: () => cli('SCRIPT', 'KILL'),
  },
];

/** The trace of a rollout that was judged with reward 1. */
function judge(task: Task): Judged {
  const trajectory = bareTrajectory({ token_mode: null, endpoint: 'e' });
  const facts = bareFacts();
  Object.assign(task.trace, { trajectory, patch: 'a patch', facts });
  return { facts, reward: 1, row: 'evaluated', resolved: true };
}

/** One worker and one rollout with a given course; `logLines`: its log. */
async function startScene(rollout: (task: Task) => Promise<Judged>, artifacts = 'redis:') {
  const flags = { redis_url: redis.url, redis_prefix: `r-${newId()}`, artifacts };
  const farm: Farm = await openFarm(loadConfig('worker', { env: {}, flags }), 'worker');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const record = bareRun({ group_size: 1 });
  const one = await submitOne(farm, record, bareInstance());
  const logLines: string[] = [];
  const write = (line: string) => void logLines.push(line);
  const node = openNode({
    ...{ farm, runtime: emptyRuntime, threads: noThreads, runRollout: rollout, flags: { worker_id: 'w1' } },
    log: createLog({ log_level: 'info', log_format: 'json' }, {}, { write }),
  });
  onTestFinished(() => node.policies[Symbol.dispose]());
  return {
    ...{ ...one, farm, active: node.active, logLines, runId: record.run_id },
    attempt: () => one.attempt(node),
    refused: async (): Promise<void> => {
      while (!logLines.some((line) => line.includes('Redis refused the request'))) await sleep(10);
    },
  };
}

const JUDGED = { outcome: 'judged', reward: 1, resolved: true, failure: null, attempt: 1 };
const inFolder = (): string => `dir:${join(folder, 'artifacts')}`;

test.each(REFUSALS)('$name when a rollout is judged: it is committed as judged, once', async (refusal) => {
  const at = await startScene(async (task) => {
    const judged = judge(task);
    await refusal.begin();
    return judged;
  }, inFolder());
  const over = at.attempt();
  await Promise.race([at.refused(), over]);
  await refusal.end();
  expect(await over).toEqual({ next: 'done' });
  expect(await at.results()).toEqual([expect.objectContaining(JUDGED)]);
  expect(await at.ends()).toEqual(['done']);
  const refusals = at.logLines.filter((line) => line.includes('Redis refused the request'));
  expect(refusals).toEqual([expect.stringMatching(refusal.error)]);
});

test('a refused artifact is written later, and claims and ends of attempts are retried too', async () => {
  const at = await startScene(async (task) => judge(task));
  await NO_REPLICAS.begin();
  const over = at.attempt();
  await at.refused();
  await NO_REPLICAS.end();
  expect(await over).toEqual({ next: 'done' });
  const again = await startScene(async (task) => {
    await NO_REPLICAS.begin();
    return judge(task);
  });
  const committing = again.attempt();
  await again.refused();
  await NO_REPLICAS.end();
  expect(await committing).toEqual({ next: 'done' });
  for (const { results, farm } of [at, again]) {
    const [result, more] = await results();
    expect(more).toBeUndefined();
    expect(result).toMatchObject(JUDGED);
    expect((await farm.artifacts.get(result?.artifact ?? '')).byteLength).toBeGreaterThan(0);
  }
});

test('a stopping worker hands back refused rollouts with their work for the next attempt', async () => {
  const resumed: unknown[] = [];
  const at = await startScene(async (task) => {
    resumed.push(task.resumable?.patch);
    const judged = judge(task);
    if (resumed.length === 1) await NO_REPLICAS.begin();
    return judged;
  }, inFolder());
  const over = at.attempt();
  await at.refused();
  at.active.abortAll('drain');
  await sleep(300);
  await NO_REPLICAS.end();
  expect(await over).toMatchObject({ next: 'hand_back' });
  expect(await at.ends()).toEqual(['drained kept']);
  expect(await at.attempt()).toEqual({ next: 'done' });
  expect(resumed).toEqual([undefined, 'a patch']);
  expect(await at.results()).toEqual([expect.objectContaining({ ...JUDGED, attempt: 2 })]);
});

test('an attempt that was taken over commits nothing; a removed run ends the job', async () => {
  const at = await startScene(async (task) => {
    await NO_REPLICAS.begin();
    return judge(task);
  }, inFolder());
  const over = at.attempt();
  await at.refused();
  at.active.abort(at.id, 'superseded');
  expect(await over).toEqual({ next: 'done' });
  await NO_REPLICAS.end();
  expect(await at.results()).toEqual([]);

  const gone = await startScene(async (task) => {
    await gone.farm.runs.remove(gone.runId);
    await NO_REPLICAS.begin();
    return judge(task);
  }, inFolder());
  const ending = gone.attempt();
  await Promise.race([gone.refused(), ending]);
  await NO_REPLICAS.end();
  expect(await ending).toEqual({ next: 'done' });
});

test('a refusal inside a rollout is no bug and costs no attempt', async () => {
  let first = true;
  const at = await startScene(async (task) => {
    if (!first) return judge(task);
    first = false;
    await NO_REPLICAS.begin();
    return await at.farm.live.end('w1', at.id).then(() => judge(task));
  }, inFolder());
  const over = at.attempt();
  await at.refused();
  await NO_REPLICAS.end();
  expect(await over).toMatchObject({ next: 'later' });
  expect(await at.ends()).toEqual(['drained']);
  expect(await at.attempt()).toEqual({ next: 'done' });
  expect(await at.results()).toEqual([expect.objectContaining({ ...JUDGED, attempt: 2 })]);
});

test('under refusals each rollout has one result, and no job is left', async () => {
  const flags = { redis_url: redis.url, redis_prefix: `{r-${newId()}}`, node: 'n1', worker_id: 'w1' };
  const config = loadConfig('worker', { env: {}, flags });
  await using farm = await openFarm(config, 'producer');
  const record = bareRun({ group_size: 12 });
  await farm.runs.create(record, [bareInstance()]);
  await farm.jobs.enqueue(record, await farm.groups.rollouts(record.run_id));
  const worker = await simulateWorker(config, {
    slots: 4,
    work: (_job, { signal }) => sleep(150, undefined, { signal }),
  });
  for (const refusal of [NO_REPLICAS, ...REFUSALS.slice(1, 3)]) {
    await refusal.begin();
    await sleep(700);
    await refusal.end();
    await sleep(100);
  }
  const results = async () => (await farm.results.read(record.run_id, '0')).results;
  const open = async (): Promise<number> =>
    Object.values(
      await farm.queue().getJobCounts('active', 'delayed', 'prioritized', 'waiting', 'failed'),
    ).reduce((sum, count) => sum + count, 0);
  while ((await results()).length < 12 || (await open()) > 0) await sleep(100);
  expect((await results()).map(({ result }) => result.outcome)).toEqual(Array(12).fill('judged'));
  await worker.drain();
});
