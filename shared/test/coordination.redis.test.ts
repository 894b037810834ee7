import { expect, test } from 'vitest';
import { openFarm, Secret } from '../src/index.ts';
import { testConfig, testFarm, testInstance, testRun, testWorker } from './farm.ts';

test('cancelling a run or rollouts increments the epoch', async () => {
  await using farm = await testFarm();
  const [run, other] = [testRun(), testRun()];
  await farm.runs.create(run, [testInstance()]);
  await farm.runs.create(other, [testInstance()]);
  const before = await farm.cancel.epoch();
  const ids = [`${run.run_id}.a__b.c-1.0`, `${run.run_id}.a__b.c-1.1`, `${other.run_id}.a__b.c-1.0`];
  await farm.cancel.cancelRollouts(ids.slice(0, 1));
  const marks = async () => Object.fromEntries(await farm.cancel.isCancelled(ids));
  const [first = '', second = '', third = ''] = ids;
  expect(await marks()).toEqual({ [first]: 'cancelled' });
  await farm.cancel.cancelRun(run.run_id, 'deadline');
  expect(await marks()).toEqual({ [first]: 'cancelled', [second]: 'deadline' });
  await farm.cancel.cancelRun(run.run_id, 'stale');
  expect(await marks()).toEqual({ [first]: 'cancelled', [second]: 'deadline' });
  await farm.cancel.cancelGroup(other.run_id, 'a__b.c-1', 'early_stop');
  expect(await marks()).toMatchObject({ [third]: 'early_stop' });
  expect(await farm.cancel.epoch()).toBe(before + 4);
  await farm.cancel.cancelRun('gone');
  expect(await farm.cancel.epoch()).toBe(before + 4);
  expect(await farm.cancel.isCancelled([])).toEqual(new Map());
});

test('workers are listed while they beat; a beat returns the cancel epoch', async () => {
  await using farm = await testFarm();
  const run = testRun();
  await farm.runs.create(run, []);
  expect(await farm.registry.beat(testWorker({ worker: 'w1' }))).toEqual({ cancel_epoch: 0, drained: false });
  await farm.cancel.cancelRun(run.run_id);
  expect(await farm.registry.beat(testWorker({ worker: 'w2' }))).toEqual({ cancel_epoch: 1, drained: false });
  expect((await farm.registry.list()).map((record) => record.worker).sort()).toEqual(['w1', 'w2']);
  await farm.registry.leave('w1');
  expect(await farm.registry.list()).toEqual([testWorker({ worker: 'w2' })]);
});

test('a lease has one holder until it expires or is released', async () => {
  await using farm = await testFarm();
  expect(await farm.leases.acquire('keeper', 'a', 60_000)).toBe(true);
  expect(await farm.leases.acquire('keeper', 'b', 60_000)).toBe(false);
  expect(await farm.leases.acquire('keeper', 'a', 60_000)).toBe(true);
  await farm.leases.release('keeper', 'b');
  expect(await farm.leases.acquire('keeper', 'b', 60_000)).toBe(false);
  await farm.leases.release('keeper', 'a');
  expect(await farm.leases.acquire('keeper', 'b', 100)).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(await farm.leases.acquire('keeper', 'a', 60_000)).toBe(true);
});

test('secrets are stored with a life time and their origins', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const origins = ['https://a:8000'];
  await farm.secrets.put('key', { secret: new Secret('sk-1'), origins }, 60);
  const stored = await farm.secrets.get('key');
  expect([stored?.secret.reveal(), stored?.origins]).toEqual(['sk-1', origins]);
  expect(await farm.secrets.get('other')).toBeNull();
  await farm.secrets.put('brief', { secret: new Secret('sk-2'), origins }, 1);
  await expect.poll(() => farm.secrets.get('brief')).toBeNull();
});
