import { rawRedis } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { openFarm, versionsBehind } from '../src/index.ts';
import { testConfig, testFarm } from './farm.ts';

test('a record is created and changed; a repeated change does nothing', async () => {
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

test('a report returns the rollouts of other workers by endpoint', async () => {
  await using farm = await testFarm();
  const view = (url: string, load: number) => ({ url, load, aside_seconds: 0, reason: null });
  const [a, b] = ['http://a/v1', 'http://b/v1'];
  expect(await farm.policies.report('w1', [view(a, 2), view(b, 1)])).toEqual(new Map());
  expect(await farm.policies.report('w2', [view(a, 3)])).toEqual(
    new Map([
      [a, 2],
      [b, 1],
    ]),
  );
  // A repeated report changes nothing; another number replaces the first.
  await farm.policies.report('w2', [view(a, 3)]);
  expect(await farm.policies.report('w2', [view(a, 1)])).toEqual(
    new Map([
      [a, 2],
      [b, 1],
    ]),
  );
  expect(await farm.policies.report('w1', [view(b, 0)])).toEqual(new Map([[a, 1]]));
  expect(await farm.policies.reports()).toEqual(
    new Map([
      ['w1', [view(b, 0)]],
      ['w2', [view(a, 1)]],
    ]),
  );
  await farm.policies.report('w2', []);
  expect(await farm.policies.report('w1', [])).toEqual(new Map());
  expect(await farm.policies.reports()).toEqual(new Map());
});

test('rollouts of a worker without a report do not count', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const send = rawRedis(farm);
  const of = (part: string): string => `${config.redis_prefix}:policy-reports:${part}`;
  const bound = { url: 'http://a/v1', load: 2, aside_seconds: 0, reason: null };
  await farm.policies.report('dead', [bound]);
  await send('ZADD', of('lapses'), 1, 'dead');
  expect(await farm.policies.reports()).toEqual(new Map());
  expect(await farm.policies.report('w', [{ ...bound, load: 1 }])).toEqual(new Map());
  expect(await send('HGETALL', of('loads'))).toEqual(['http://a/v1', '1']);
});
