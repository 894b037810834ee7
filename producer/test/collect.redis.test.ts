import { readdir, readFile, truncate, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { rolloutIds, submit } from '@swefarm/runs';
import { instances, testConfig, testFarm, testFolder, testRecord } from '@swefarm/runs/test/farm.ts';
import { startRedis } from '@swefarm/testkit';
import { collect, type Output, openOutputFile } from '@swefarm/trajectories';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, onTestFinished, test } from 'vitest';

const idsIn = async (path: string): Promise<string[]> =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).rollout_id);

async function setup(count: number, groupSize: number) {
  const farm = await testFarm();
  const all = instances(count);
  const record = testRecord(all, groupSize);
  const { rollouts } = await submit(farm, { record, instances: all });
  return { farm, all, record, rollouts: new Set(rollouts) };
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
  const { farm, record, rollouts } = await setup(10, 3);
  const path = join(await testFolder(), 'out.jsonl');
  const working = (async () => {
    for (const id of rollouts) {
      await commitRollout(farm, record, id);
      await commitRollout(farm, record, id);
    }
  })();
  // A collector that dies after its first lines, in the middle of a line, with an old cursor.
  {
    await using output = await openOutputFile(path, record.run_id);
    const dying = new AbortController();
    const done = collect(farm, {
      runId: record.run_id,
      rollouts,
      output: dyingAfter(output, 2),
      signal: dying.signal,
    });
    await expect(done).rejects.toThrow('killed');
  }
  const { size } = await import('node:fs').then((fs) => fs.statSync(path));
  await truncate(path, size - 5);
  await using output = await openOutputFile(path, record.run_id);
  const { complete } = await collect(farm, { runId: record.run_id, rollouts, output });
  await working;
  expect(complete).toBe(true);
  expect((await idsIn(path)).toSorted()).toEqual([...rollouts].toSorted());
});

test('an output that lost its file is filled again from the stream', async () => {
  const { farm, record, rollouts } = await setup(2, 2);
  const path = join(await testFolder(), 'out.jsonl');
  for (const id of rollouts) await commitRollout(farm, record, id);
  for (const lost of [false, true]) {
    if (lost) await unlink(path);
    await using output = await openOutputFile(path, record.run_id);
    await collect(farm, { runId: record.run_id, rollouts, output });
    expect(await idsIn(path)).toHaveLength(4);
  }
});

test('lines carry the patch; artifacts are copied; a missing artifact costs the patch, not the line', async () => {
  const { farm, record, rollouts } = await setup(1, 2);
  const folder = await testFolder();
  const path = join(folder, 'out.jsonl');
  const [first = '', second = ''] = rollouts;
  await commitRollout(farm, record, first);
  await commitRollout(farm, record, second);
  await farm.artifacts.remove((await farm.results.get(second))?.artifact ?? '');
  const warnings: string[] = [];
  await using output = await openOutputFile(path, record.run_id);
  await collect(farm, {
    runId: record.run_id,
    rollouts,
    output,
    copyArtifactsTo: join(folder, 'artifacts'),
    onWarning: (text) => warnings.push(text),
  });
  const lines = (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map((line) => line.patch)).toEqual([`patch of ${first}`, null]);
  expect(await readdir(join(folder, 'artifacts'))).toEqual([`${first}.json.gz`]);
  expect(warnings).toHaveLength(1);
});

test('told to stop, it takes what is there and says that it is not all', async () => {
  const { farm, record, rollouts } = await setup(1, 3);
  const path = join(await testFolder(), 'out.jsonl');
  const [first = ''] = rollouts;
  await commitRollout(farm, record, first);
  await using output = await openOutputFile(path, record.run_id);
  const { complete } = await collect(farm, {
    runId: record.run_id,
    rollouts,
    output,
    signal: AbortSignal.timeout(5_000),
  });
  expect(complete).toBe(false);
  expect(await idsIn(path)).toEqual([first]);
});

test('a Redis that is killed and comes back costs nothing', async () => {
  const redis = await startRedis({ settings: ['appendfsync always'] });
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const config = testConfig(redis.url);
  const farm = await testFarm(config);
  const all = instances(6);
  const record = testRecord(all, 2);
  const { rollouts } = await submit(farm, { record, instances: all });
  const path = join(await testFolder(), 'out.jsonl');
  await using output = await openOutputFile(path, record.run_id);
  const collecting = collect(farm, { runId: record.run_id, rollouts: new Set(rollouts), output });
  for (const id of rollouts.slice(0, 6)) await commitRollout(farm, record, id);
  await redis.kill();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await redis.restart();
  const worker = await testFarm(config);
  for (const id of rollouts.slice(6)) await commitRollout(worker, record, id);
  expect((await collecting).complete).toBe(true);
  expect((await idsIn(path)).toSorted()).toEqual(rollouts.toSorted());
});

test('a Redis that stays away, or lost the run, ends collecting with a reason', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const farm = await testFarm(testConfig(redis.url));
  const all = instances(1);
  const record = testRecord(all, 1);
  const rollouts = new Set(rolloutIds(record, all));
  await submit(farm, { record, instances: all });
  await using output = await openOutputFile(join(await testFolder(), 'out.jsonl'), record.run_id);
  const collecting = collect(farm, { runId: record.run_id, rollouts, output, patienceMs: 1_000 });
  await redis.kill();
  await expect(collecting).rejects.toMatchObject({ code: 'redis_unreachable' });
});

test('a removed run is noticed', async () => {
  const { farm, record, rollouts } = await setup(1, 1);
  await using output = await openOutputFile(join(await testFolder(), 'out.jsonl'), record.run_id);
  await farm.runs.remove(record.run_id);
  await expect(collect(farm, { runId: record.run_id, rollouts, output })).rejects.toMatchObject({
    code: 'run_gone',
  });
});

/** Throws in place of the append after `batches`, as if the process had been killed there. */
function dyingAfter(output: Output, batches: number): Output {
  let left = batches;
  return {
    get name() {
      return output.name;
    },
    get lines() {
      return output.lines;
    },
    get cursor() {
      return output.cursor;
    },
    async append(lines, cursor) {
      if (left-- <= 0) throw new Error('killed');
      await output.append(lines, cursor);
    },
    [Symbol.asyncDispose]: () => output[Symbol.asyncDispose](),
  };
}
