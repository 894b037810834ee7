/**
 * Tests a rolling upgrade and a rollback during a run: workers of an earlier commit and of this version share one Redis. Each rollout
 * has one result, and no worker counts as crashed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { AgentConfig, type Farm, loadConfig, newId, openFarm, type RunRecord } from '@swefarm/shared';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../src/launchers/redis.ts';
import { bareInstance, bareRun } from '../../src/results/bare.ts';
import { until } from '../../src/until.ts';
import { checkOut } from './oldtree.ts';

/** The earliest commit whose workers can share a Redis with this version. Replace it by the tag of the first release. */
const BEFORE = '392b3be';
const OURS = resolve(import.meta.dirname, '../../..');
const ROLLOUT_MS = 1_500;
const SLOTS = 4;

type Fleet = {
  farm: Farm;
  old: string;
  /** Starts a worker of the sources in `folder`. Resolves when it is ready. */
  start(folder: string, name: string): Promise<ChildProcess>;
  /** Drains a worker, as an upgrade does. */
  drain(worker: ChildProcess): Promise<void>;
};

async function fleet(): Promise<Fleet> {
  const old = await checkOut(BEFORE);
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const prefix = `{u-${newId()}}`;
  const flags = { redis_url: redis.url, redis_prefix: prefix };
  const farm = await openFarm(loadConfig('producer', { env: {}, flags }), 'producer');
  onTestFinished(() => farm[Symbol.asyncDispose]());
  return {
    farm,
    old,
    async start(folder, name) {
      const script = resolve(import.meta.dirname, 'simulated.mjs');
      const args = [script, folder, redis.url, prefix, name, String(SLOTS), String(ROLLOUT_MS)];
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
      onTestFinished(() => void child.kill('SIGKILL'));
      let output = '';
      child.stderr.on('data', (bytes) => {
        output += bytes;
      });
      const ended = once(child, 'exit').then(([code]) => {
        throw new Error(`worker ${name} of ${folder} ended with ${code}: ${output.slice(-2_000)}`);
      });
      ended.catch(() => undefined);
      await Promise.race([once(child.stdout, 'data'), ended]);
      return child;
    },
    async drain(worker) {
      worker.kill('SIGTERM');
      await once(worker, 'exit');
    },
  };
}

async function submit(farm: Farm, rollouts: number): Promise<RunRecord> {
  const count = rollouts / 8;
  const run = bareRun({
    ...{ group_size: 8, agent: AgentConfig.parse({ type: 'noop' }) },
    dataset: { path: 'rows.jsonl', sha256: 'ab', instances: count },
  });
  const instances = Array.from({ length: count }, (_, at) =>
    bareInstance({ instance_id: `a__b-${at}`, image: `example:${at}` }),
  );
  await farm.runs.create(run, instances);
  await farm.jobs.enqueue(run, await farm.groups.rollouts(run.run_id));
  return run;
}

const committed = (farm: Farm, run: RunRecord, count: number): Promise<number> =>
  until(async () => (await farm.results.counts(run.run_id)).committed >= count, {
    ...{ withinMs: 300_000, pauseMs: 100, what: `${count} results` },
  });

/** Fails unless each rollout has one judged result and no attempt or worker counts as lost. Returns the workers of the results. */
async function expectWhole(farm: Farm, run: RunRecord, rollouts: number): Promise<Set<string>> {
  await committed(farm, run, rollouts);
  const { results, unreadable } = await farm.results.read(run.run_id, '0');
  expect(unreadable).toEqual([]);
  expect(results).toHaveLength(rollouts);
  expect(new Set(results.map(({ result }) => result.rollout_id)).size).toBe(rollouts);
  expect(results.filter(({ result }) => result.outcome !== 'judged')).toEqual([]);
  const totals = (await farm.results.totals()).get('collection') ?? {};
  expect(totals['attempt:lost'] ?? 0).toBe(0);
  expect(await farm.registry.lost()).toBe(0);
  return new Set(results.map(({ result }) => result.worker));
}

test('workers of both versions give 64 rollouts one result each, without a crash', async () => {
  const { farm, old, start } = await fleet();
  await Promise.all([start(old, 'old-1'), start(old, 'old-2'), start(OURS, 'new-1'), start(OURS, 'new-2')]);
  const run = await submit(farm, 64);
  const by = await expectWhole(farm, run, 64);
  expect(by).toEqual(new Set(['old-1', 'old-2', 'new-1', 'new-2']));
  const { results } = await farm.results.read(run.run_id, '0');
  for (const { result } of results) expect(result.claim, result.worker).toBeDefined();
  const alive = await farm.registry.list();
  expect(new Set(alive.map(({ software_version }) => software_version)).size).toBe(2);
});

test('an upgrade during a run and a rollback during the next one lose no rollout', async () => {
  const { farm, old, start, drain } = await fleet();
  const before = [await start(old, 'old-1'), await start(old, 'old-2')];
  const first = await submit(farm, 64);
  await committed(farm, first, 8);
  const after: ChildProcess[] = [];
  for (const [at, worker] of before.entries()) {
    after.push(await start(OURS, `new-${at}`));
    await drain(worker);
  }
  await expectWhole(farm, first, 64);
  const second = await submit(farm, 64);
  await committed(farm, second, 8);
  for (const [at, worker] of after.entries()) {
    await start(old, `back-${at}`);
    await drain(worker);
  }
  const by = await expectWhole(farm, second, 64);
  expect([...by].some((name) => name.startsWith('back'))).toBe(true);
});
