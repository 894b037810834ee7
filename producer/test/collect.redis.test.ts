import { readdir, stat, truncate, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { submit } from '@swefarm/runs';
import { instances, testConfig, testFarm, testFolder, testRecord } from '@swefarm/runs/test/farm.ts';
import type { Farm } from '@swefarm/shared';
import { startRedis } from '@swefarm/testkit';
import { type CollectOptions, collect, type Output, openOutputFile } from '@swefarm/trajectories';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, onTestFinished, test } from 'vitest';
import { linesOf } from './cli.ts';

const idsIn = async (path: string): Promise<string[]> =>
  (await linesOf(path)).map(({ rollout_id }) => rollout_id);

async function setup(count: number, groupSize: number, ownFarm?: Farm) {
  const farm = ownFarm ?? (await testFarm());
  const all = instances(count);
  const record = testRecord(all, groupSize);
  const rollouts = new Set((await submit(farm, { record, instances: all })).rollouts);
  const folder = await testFolder();
  const path = join(folder, 'out.jsonl');
  /** Opens the file and collects into it, as one process does. */
  const collected = async ({
    dyingAfter,
    ...more
  }: Partial<CollectOptions> & { dyingAfter?: number } = {}) => {
    await using file = await openOutputFile(path, record.run_id);
    const output = dyingAfter === undefined ? file : dying(file, dyingAfter);
    return await collect(farm, { runId: record.run_id, rollouts, output, ...more });
  };
  return { farm, all, record, rollouts, folder, path, collected };
}

test('jobs are small, ordered by group within their class, and added once', async () => {
  const { farm, all, record, rollouts } = await setup(3, 2);
  const jobs = await farm.queue().getJobs(['prioritized']);
  expect(jobs.map((job) => job.id).toSorted()).toEqual([...rollouts].toSorted());
  for (const job of jobs) expect(JSON.stringify(job.data).length).toBeLessThan(1024);
  expect(jobs.map((job) => job.opts.priority).toSorted()).toEqual(
    [1, 1, 3, 3, 5, 5].map((at) => 2 * 2 ** 19 + at),
  );
  await submit(farm, { record, instances: all });
  expect(await farm.queue().getJobCountByTypes('prioritized')).toBe(6);
  expect((await farm.runs.getInstance(record.run_id, 'a__b-1'))?.patch).toBe('gold');
});

test('a repeated submit adds only what has neither result nor line nor job', async () => {
  const { farm, all, record, rollouts } = await setup(2, 2);
  const [first = '', second = '', third = ''] = rollouts;
  await commitRollout(farm, record, first);
  for (const id of [first, second, third]) await (await farm.queue().getJob(id))?.remove();
  const again = await submit(farm, { record, instances: all, done: new Set([second]) });
  expect(again.queued).toBe(2);
  expect(await farm.queue().getJob(first)).toBeUndefined();
  expect(await farm.queue().getJob(second)).toBeUndefined();
  expect(await farm.queue().getJob(third)).toBeDefined();
});

test('patches reach the rollouts of their instance in turn', async () => {
  const farm = await testFarm();
  const all = instances(1);
  const record = testRecord(all, 3, { agent: 'patch' });
  await submit(farm, { record, instances: all, patches: new Map([['a__b-0', ['one', 'two']]]) });
  const refs = (await farm.queue().getJobs(['prioritized'])).map((job) => [
    job.data.rollout_index,
    job.data.patch_ref,
  ]);
  const patches = await Promise.all(
    refs.toSorted().map(([, ref]) => farm.runs.getPatch(record.run_id, String(ref))),
  );
  expect(patches).toEqual(['one', 'two', 'one']);
});

test('every rollout has one line, whoever commits twice and whenever the collector dies', async () => {
  const { farm, record, rollouts, path, collected } = await setup(10, 3);
  const working = (async () => {
    for (const id of rollouts) {
      await commitRollout(farm, record, id);
      await commitRollout(farm, record, id);
    }
  })();
  // The collector dies after its first lines; its last line is incomplete.
  await expect(collected({ dyingAfter: 2 })).rejects.toThrow('killed');
  await truncate(path, (await stat(path)).size - 5);
  const { complete } = await collected();
  await working;
  expect(complete).toBe(true);
  expect((await idsIn(path)).toSorted()).toEqual([...rollouts].toSorted());
});

test('an output that lost its file is filled again from the stream', async () => {
  const { farm, record, rollouts, path, collected } = await setup(2, 2);
  for (const id of rollouts) await commitRollout(farm, record, id);
  for (const lost of [false, true]) {
    if (lost) await unlink(path);
    await collected();
    expect(await idsIn(path)).toHaveLength(4);
  }
});

test('lines have the patch, artifacts are copied, and a missing artifact costs only the patch', async () => {
  const { farm, record, rollouts, folder, path, collected } = await setup(1, 2);
  const [first = '', second = ''] = rollouts;
  await commitRollout(farm, record, first);
  await commitRollout(farm, record, second);
  await farm.artifacts.remove((await farm.results.get(second))?.artifact ?? '');
  const warnings: string[] = [];
  const copyArtifactsTo = join(folder, 'artifacts');
  await collected({ copyArtifactsTo, onWarning: (text) => warnings.push(text) });
  const lines = await linesOf(path);
  expect(lines.map((line) => line.patch)).toEqual([`patch of ${first}`, null]);
  expect(await readdir(copyArtifactsTo)).toEqual([`${first}.json.gz`]);
  expect(warnings).toHaveLength(1);
});

test('told to stop, it takes what is there and says that it is not all', async () => {
  const { farm, record, rollouts, path, collected } = await setup(1, 3);
  const [first = ''] = rollouts;
  await commitRollout(farm, record, first);
  const { complete } = await collected({ signal: AbortSignal.timeout(5_000) });
  expect(complete).toBe(false);
  expect(await idsIn(path)).toEqual([first]);
});

test('a Redis that is killed and comes back costs nothing', async () => {
  const redis = await startRedis({ settings: ['appendfsync always'] });
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const config = testConfig(redis.url);
  const { farm, record, rollouts, path, collected } = await setup(6, 2, await testFarm(config));
  const ids = [...rollouts];
  const collecting = collected();
  for (const id of ids.slice(0, 6)) await commitRollout(farm, record, id);
  await redis.kill();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await redis.restart();
  const worker = await testFarm(config);
  for (const id of ids.slice(6)) await commitRollout(worker, record, id);
  expect((await collecting).complete).toBe(true);
  expect((await idsIn(path)).toSorted()).toEqual(ids.toSorted());
});

test('a Redis that stays away, or lost the run, ends collecting with a reason', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const { collected } = await setup(1, 1, await testFarm(testConfig(redis.url)));
  const collecting = collected({ patienceMs: 1_000 });
  await redis.kill();
  await expect(collecting).rejects.toMatchObject({ code: 'redis_unreachable' });
});

test('a removed run is noticed', async () => {
  const { farm, record, collected } = await setup(1, 1);
  await farm.runs.remove(record.run_id);
  await expect(collected()).rejects.toMatchObject({ code: 'run_gone' });
});

/** Returns an output that throws after `batches` appends, as if the process were killed there. */
function dying(output: Output, batches: number): Output {
  let left = batches;
  const append: Output['append'] = async (lines, cursor) => {
    if (left-- <= 0) throw new Error('killed');
    await output.append(lines, cursor);
  };
  return Object.create(output, { append: { value: append } });
}
