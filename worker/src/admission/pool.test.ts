import { PolicyConfig, type PolicyRecord } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { poolOf } from './pool.ts';

const config = (change: object) =>
  PolicyConfig.parse({ urls: ['http://gpu1:8000/v1'], model: 'm', ...change });
const record = (change: Partial<PolicyRecord>): PolicyRecord => ({
  ...{
    name: 'default',
    version: null,
    versions: [],
    endpoints: [],
    model: null,
    state: 'serving',
    changed_at: 0,
  },
  ...change,
});
const idOf = async (change: object, known: PolicyRecord[] = []): Promise<string | undefined> =>
  (await poolOf(config(change), { get: async (names) => known.filter(({ name }) => names.includes(name)) }))
    ?.id;

test('rollouts share the pool of their registered policy, else of their endpoints', async () => {
  expect(await idOf({})).toBe('gpu1:8000');
  expect(await idOf({ urls: ['https://api.test/v1/'] })).toBe('api.test:443');
  expect(await idOf({ urls: ['http://gpu1:8000/a/v1'] })).toMatch(/^gpu1:8000-[0-9a-f]{6}$/);
  const two = { urls: ['http://gpu2:8000/v1', 'http://gpu1:8000/v1'] };
  expect(await idOf(two)).toMatch(/^gpu1:8000\+1-[0-9a-f]{6}$/);
  expect(await idOf({ urls: two.urls.toReversed() })).toBe(await idOf(two));
  expect(await idOf({}, [record({})])).toBe('gpu1:8000');
  expect(await idOf({}, [record({ endpoints: ['http://gpu1:8000/v1'] })])).toBe('default');
  expect(await idOf({}, [record({ endpoints: ['http://other:8000/v1'] })])).toBe('gpu1:8000');
  expect(await idOf({ name: 'main' }, [record({ name: 'main' })])).toBe('main');
});

test('a number makes a pool of its own, and off none', async () => {
  expect(await idOf({ admission: 32 })).toBe('gpu1:8000#32');
  expect(await idOf({ admission: 'off' })).toBeUndefined();
});

test('a run without endpoints has a pool only if it follows a policy', async () => {
  expect(await idOf({ urls: [] })).toBeUndefined();
  expect(await idOf({ urls: [], admission: 4 })).toBeUndefined();
  expect(await idOf({ urls: [], name: 'main' }, [record({ name: 'main' })])).toBe('main');
});

test('the endpoints are those that the policy has now', async () => {
  const known = [record({ endpoints: ['http://gpu1:8000/v1'] })];
  const pool = await poolOf(config({}), { get: async () => known });
  expect(await pool?.endpoints()).toEqual({ urls: ['http://gpu1:8000/v1'], serving: true });
  known[0] = record({ endpoints: ['http://gpu1:8000/v1', 'http://gpu7:8000/v1'], state: 'updating' });
  expect(await pool?.endpoints()).toEqual({ urls: known[0].endpoints, serving: false });
});
