import { expect, test } from 'vitest';
import { versionsBehind } from '../src/index.ts';
import { testFarm } from './farm.ts';

test('a record is made by the first call, changed by the next, and the same call again is none', async () => {
  await using farm = await testFarm();
  expect(await farm.policies.get(['default'])).toEqual([]);
  const made = await farm.policies.set('default', { version: 'step-1', endpoints: ['http://a/v1'] });
  expect(made).toMatchObject({ version: 'step-1', versions: ['step-1'], state: 'serving' });
  const updating = await farm.policies.set('default', { state: 'updating' });
  expect(updating).toMatchObject({ version: 'step-1', endpoints: ['http://a/v1'], state: 'updating' });
  expect(await farm.policies.set('default', { state: 'updating' })).toEqual(updating);
  await farm.policies.set('default', { version: 'step-2' });
  const serving = await farm.policies.set('default', { state: 'serving', version: 'step-3', endpoints: [] });
  expect(serving).toMatchObject({
    versions: ['step-1', 'step-2', 'step-3'],
    endpoints: [],
    state: 'serving',
  });
  expect([null, 'step-1', 'step-3', 'gone'].map((version) => versionsBehind(serving, version))).toEqual([
    null,
    2,
    0,
    null,
  ]);
});

test('the list of versions is bounded', async () => {
  await using farm = await testFarm();
  for (let step = 0; step < 105; step++) await farm.policies.set('p', { version: String(step) });
  const [record] = await farm.policies.get(['p']);
  expect(record?.versions).toHaveLength(100);
  expect(record?.versions.at(-1)).toBe('104');
});

test('bad names and changes are refused, and policies are listed and removed', async () => {
  await using farm = await testFarm();
  await expect(farm.policies.set('a b', {})).rejects.toThrow();
  await expect(farm.policies.set('a', { endpoints: ['nowhere'] })).rejects.toThrow();
  await expect(farm.policies.set('a', {})).rejects.toThrow();
  await farm.policies.set('b', { state: 'serving' });
  await farm.policies.set('a', { state: 'asleep' });
  expect((await farm.policies.list()).map(({ name }) => name)).toEqual(['a', 'b']);
  await farm.policies.remove('a');
  expect((await farm.policies.list()).map(({ name }) => name)).toEqual(['b']);
});

test('what workers see of endpoints is told by worker', async () => {
  await using farm = await testFarm();
  const view = { url: 'http://a/v1', load: 2, aside_seconds: 0, reason: null };
  await farm.policies.report('w1', [view]);
  expect(await farm.policies.reports(['w1', 'w2'])).toEqual(new Map([['w1', [view]]]));
});
