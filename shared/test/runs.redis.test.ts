import { expect, test } from 'vitest';
import { openFarm, PolicyConfig, Secret } from '../src/index.ts';
import { keysOf, nth, openRun, testConfig, testFarm, testInstance, testResult, testRun } from './farm.ts';

test('a run, its instances and patches are read as written', async () => {
  await using farm = await testFarm();
  const run = testRun();
  await farm.runs.create(run, [testInstance(), testInstance('x-2')], [['x-2.0', 'diff --git\n']]);
  expect(await farm.runs.get(run.run_id)).toEqual(run);
  expect(await farm.runs.getInstance(run.run_id, 'x-2')).toEqual(testInstance('x-2'));
  expect(await farm.runs.getInstance(run.run_id, 'nobody')).toBeNull();
  expect(await farm.runs.getPatch(run.run_id, 'x-2.0')).toBe('diff --git\n');
  expect((await farm.runs.instanceIds(run.run_id)).sort()).toEqual(['a__b.c-1', 'x-2']);
});

test('creating a run again changes nothing; another run with its id is refused', async () => {
  const { farm, run } = await openRun();
  await farm.commit(run, testResult(run.run_id, 0));
  await farm.runs.create({ ...run, created_at: '2026-02-02T00:00:00.000Z' }, [
    testInstance(),
    testInstance('x-2'),
  ]);
  expect((await farm.results.groups(run.run_id)).get('a__b.c-1')).toMatchObject({ left: 3, usable: 1 });
  expect((await farm.results.groups(run.run_id)).get('x-2')).toMatchObject({ left: 4, usable: 0 });
  expect((await farm.runs.get(run.run_id))?.created_at).toBe(run.created_at);
  await expect(farm.runs.create({ ...run, group_size: 5 }, [])).rejects.toMatchObject({
    code: 'run_differs',
  });
});

test('runs are listed newest first', async () => {
  await using farm = await testFarm();
  const [old, young] = [
    testRun({ created_at: '2026-01-01T00:00:00Z' }),
    testRun({ created_at: '2026-03-01T00:00:00Z' }),
  ];
  await farm.runs.create(old, []);
  await farm.runs.create(young, []);
  expect((await farm.runs.list()).map(({ run_id }) => run_id)).toEqual([young.run_id, old.run_id]);
});

test('every key of a run has a life time, which a claim and a commit renew', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const run = testRun({ ttl: 10 });
  await farm.runs.create(run, [testInstance()], [['p', 'x']]);
  await farm.journal.claim(`${run.run_id}.a__b.c-1.0`, { worker: 'w', node: 'n' });
  await farm.commit(run, testResult(run.run_id, 0));
  await farm.cancel.cancelRun(run.run_id);
  await expect.poll(() => farm.runs.list()).toEqual([]);
  await expect.poll(() => keysOf(config)).toEqual(['cancel-epoch', 'farm-id', 'totals:collection']);
});

test('removing a run removes its keys, jobs, artifacts and secret', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const name = 'gone';
  const policy = { urls: ['http://127.0.0.1:1/v1'], model: 'm', api_key_ref: name } as const;
  const run = testRun({ run_id: name, policy: PolicyConfig.parse(policy) });
  await farm.secrets.put(name, { secret: new Secret('k'), origins: ['http://127.0.0.1:1'] }, 60);
  await farm.runs.create(run, [testInstance()], [['p', 'x']]);
  const jobs = Array.from({ length: 4 }, (_, index) => `${name}.a__b.c-1.${index}`);
  await farm.queue().addBulk(
    jobs.map((rollout_id, rollout_index) => ({
      name: 'rollout',
      data: { rollout_id, run_id: name, instance_id: 'a__b.c-1', rollout_index, submitted_at: 1 },
      opts: { jobId: rollout_id, priority: 1 },
    })),
  );
  await farm.journal.claim(jobs[0] ?? '', { worker: 'w', node: 'n' });
  await farm.commit(run, testResult(name, 0));
  await farm.artifacts.put(jobs[0] ?? '', nth(1), Buffer.from('blob'));
  await farm.cancel.cancelRollouts([jobs[1] ?? '']);
  await farm.runs.remove(name);
  expect((await keysOf(config)).filter((key) => key.includes(name))).toEqual([]);
  expect(await farm.queue().getJobCountByTypes('waiting', 'prioritized')).toBe(0);
  expect(await farm.artifacts.usage()).toMatchObject({ used_bytes: 0, artifacts: 0 });
  expect(await farm.secrets.get(name)).toBeNull();
});
