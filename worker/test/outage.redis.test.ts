/** Locks expire while their workers live, after an outage of Redis or a suspend of the machine. Attempts continue, and nothing runs twice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { AgentConfig, loadConfig, newId, openFarm } from '@swefarm/shared';
import { bareInstance, bareRun, startRedis, type TestRedis } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { simulateWorker } from './simulated.ts';

const PATIENCE = { timeout: 60_000, interval: 50 };

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());

/** The queue after 20 s without Redis and one stall check: no locks, and each job of an active list waits again. */
const STALLED = `
local prefix = ARGV[1] .. ':rollouts:'
for _, job in ipairs(redis.call('LRANGE', prefix .. 'active', 0, -1)) do
  redis.call('DEL', prefix .. job .. ':lock')
  redis.call('LREM', prefix .. 'active', 1, job)
  redis.call('RPUSH', prefix .. 'wait', job)
  redis.call('HINCRBY', prefix .. job, 'stc', 1)
end
if ARGV[2] == 'alive' then
  redis.call('ZADD', prefix .. 'marker', 0, '0')
else
  -- No marker, so that no worker looks before the outage.
  for _, worker in ipairs(redis.call('ZRANGE', ARGV[1] .. ':workers', 0, -1)) do
    redis.call('DEL', ARGV[1] .. ':worker:' .. worker)
  end
end`;

async function scene(size: number) {
  const flags = { redis_url: redis.url, redis_prefix: `{o-${newId()}}`, placement: 'off' };
  const flagsOf = (worker: string) => ({ ...flags, worker_id: worker, node: `node-${worker}` });
  const configOf = (worker: string) => loadConfig('worker', { env: {}, flags: flagsOf(worker) });
  const farm = await openFarm(configOf('none'), 'producer');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const run = bareRun({ group_size: size, agent: AgentConfig.parse({ type: 'noop' }) });
  await farm.runs.create(run, [bareInstance()]);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.jobs.enqueue(run, ids);
  const ended = Promise.withResolvers<void>();
  const begun: string[] = [];
  const start = async (worker: string, slots: number) => {
    const one = await simulateWorker(configOf(worker), {
      slots,
      async work(job, { signal }) {
        begun.push(job.rollout_id);
        const aborted = once(signal, 'abort').then(() => Promise.reject(signal.reason));
        await Promise.race([ended.promise, aborted]);
      },
    });
    onTestFinished(() => one.kill());
    return one;
  };
  const journals = () => Promise.all(ids.map((id) => farm.journal.read(id)));
  return {
    ...{ farm, run, ids, start, begun, flagsOf },
    end: () => ended.resolve(),
    journals,
    /** The ends of the attempts; an attempt ends shortly after its result was committed. */
    ends: async () => (await journals()).map((journal) => journal.map(({ end }) => end?.class)),
    stall: (workers: 'alive' | 'dead') => redis.cli('EVAL', STALLED, '0', flags.redis_prefix, workers),
    committed: () =>
      expect.poll(async () => (await farm.results.counts(run.run_id)).committed, PATIENCE).toBe(size),
    /** Returns the number of locks and the number of active jobs. */
    async locked() {
      const count = "return #redis.call('KEYS', ARGV[1])";
      const locks = await redis.cli('EVAL', count, '0', `${flags.redis_prefix}:rollouts:*:lock`);
      const { active = 0 } = await farm.queue().getJobCounts('active');
      return [Number(locks), active];
    },
    lost: async () => (await farm.results.totals()).get('collection')?.['attempt:lost'] ?? 0,
  };
}

test.each([
  { name: 'only the locks are lost', workers: 'alive', pauseMs: 0 },
  { name: 'an outage longer than locks and heartbeats', workers: 'dead', pauseMs: 7_000 },
] as const)('$name: each attempt keeps its job, and none counts as a crash', async ({ workers, pauseMs }) => {
  const at = await scene(4);
  for (const worker of ['a', 'b']) await at.start(worker, 4);
  await expect.poll(at.locked, PATIENCE).toEqual([4, 4]);
  await at.stall(workers);
  if (pauseMs > 0) await redis.cli('CLIENT', 'PAUSE', String(pauseMs), 'ALL');
  await expect.poll(at.locked, PATIENCE).toEqual([4, 4]);
  // This time is longer than a claim waits for the worker of another attempt (OTHER_ATTEMPT_MS of claim.ts).
  const until = performance.now() + 9_000;
  await expect.poll(() => performance.now() > until, PATIENCE).toBe(true);
  await expect.poll(at.locked, PATIENCE).toEqual([4, 4]);
  at.end();
  await at.committed();
  expect([...at.begun].sort()).toEqual([...at.ids].sort());
  await expect.poll(at.ends, PATIENCE).toEqual(at.ids.map(() => ['done']));
  expect(await at.lost()).toBe(0);
});

test('jobs that return to their worker continue there, end once, and do not block a drain', async () => {
  const at = await scene(2);
  const worker = await at.start('a', 4);
  await expect.poll(() => at.begun.length, PATIENCE).toBe(2);
  for (let times = 0; times < 2; times++) {
    await at.stall('alive');
    await expect.poll(at.locked, PATIENCE).toEqual([2, 2]);
  }
  expect([worker.active(), at.begun.length]).toEqual([2, 2]);
  at.end();
  await at.committed();
  await expect.poll(at.locked, PATIENCE).toEqual([0, 0]);
  expect((await at.journals()).map(({ length }) => length)).toEqual([1, 1]);
});

test('a job whose living worker no longer runs it is claimed after a delay', async () => {
  const at = await scene(1);
  const [id = ''] = at.ids;
  const rest = { runtime: 'host', slots: 4, active: 1, started_at: 1, metrics: null, paused: null };
  await at.farm.registry.beat({ worker: 'silent', node: 'n', ...rest });
  await at.farm.journal.claim(id, { worker: 'silent', node: 'n' });
  at.end();
  await at.start('a', 1);
  await at.committed();
  expect((await at.journals())[0]?.map(({ worker }) => worker)).toEqual(['silent', 'a']);
});

test('an attempt that was overtaken while alive is not a crash', async () => {
  const at = await scene(1);
  const [id = ''] = at.ids;
  await at.start('a', 1);
  await expect.poll(() => at.begun.length, PATIENCE).toBe(1);
  await at.farm.journal.claim(id, { worker: 'b', node: 'n' });
  await expect
    .poll(async () => (await at.farm.journal.read(id)).map(({ end }) => end?.class ?? null), PATIENCE)
    .toEqual(['drained', null]);
});

test('a worker process stopped for longer than its locks live continues its rollouts', async () => {
  const at = await scene(2);
  const script = fileURLToPath(new URL('oneworker.ts', import.meta.url));
  const line = [script, JSON.stringify(at.flagsOf('a')), '4000'];
  const child = spawn(process.execPath, line, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (text) => {
    output += String(text);
  });
  const begun = () => output.split('\n').filter((line) => line.startsWith('begun '));
  await expect.poll(() => begun().length, PATIENCE).toBe(2);
  child.kill('SIGSTOP');
  await at.stall('dead');
  child.kill('SIGCONT');
  await at.committed();
  expect(begun()).toHaveLength(2);
  await expect.poll(at.ends, PATIENCE).toEqual([['done'], ['done']]);
  child.kill('SIGTERM');
  expect((await once(child, 'exit'))[0]).toBe(0);
});
