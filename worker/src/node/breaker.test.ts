import { silentLog } from '@swefarm/shared';
import { expect, test, vi } from 'vitest';
import { createBreaker, isOfTheNode } from './breaker.ts';

const log = silentLog();
const of = (run: string) => ({ run, image: 'a/b', instance: 'i' });

test('3 node failures and a failed check open the breaker; a passed check half-opens it', async () => {
  let now = 0;
  let healthy = false;
  let checks = 0;
  const check = (): Promise<boolean> => {
    checks += 1;
    return Promise.resolve(healthy);
  };
  const breaker = createBreaker(log, check, () => now);
  breaker.failed('sandbox_start', 'no', of('a'));
  breaker.failed('sandbox_start', 'no', of('b'));
  breaker.succeeded();
  breaker.failed('engine_unreachable', 'gone', of('a'));
  breaker.failed('policy_unreachable', 'not of this node', of('a'));
  breaker.failed('engine_unreachable', 'gone', of('b'));
  expect(breaker.reason()).toBeNull();
  breaker.failed('node_disk', 'full', of('b'));
  await vi.waitFor(() => expect(breaker.reason()).toMatch(/3 failures in a row, last node_disk: full/));

  await breaker.recheck();
  expect(checks).toBe(1);
  now += 15_000;
  await breaker.recheck();
  healthy = true;
  await breaker.recheck();
  expect([checks, breaker.reason() === null]).toEqual([2, false]);
  now += 30_000;
  await breaker.recheck();
  expect([checks, breaker.reason()]).toEqual([3, null]);
  healthy = false;
  breaker.failed('sandbox_lost', 'again', of('a'));
  await vi.waitFor(() => expect(breaker.reason()).not.toBeNull());
});

test.each([
  ['one run', ['greedy', 'greedy', 'greedy']],
  ['two runs', ['greedy', 'other', 'greedy']],
])('failures of %s open the breaker only when a trial sandbox fails too', async (_name, runs) => {
  let healthy = true;
  const checks: unknown[] = [];
  const breaker = createBreaker(log, (last) => {
    checks.push(last);
    return Promise.resolve(healthy);
  });
  const fail = (some: string[]) => {
    for (const run of some) breaker.failed('sandbox_lost', 'the container stopped', of(run));
  };
  fail(runs.slice(0, 2));
  expect(checks).toEqual([]);
  fail(runs.slice(2));
  await vi.waitFor(() => expect(checks).toEqual([of('greedy')]), 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  // The failures of the earlier run no longer count.
  fail(runs.slice(0, 2));
  expect(breaker.reason()).toBeNull();
  breaker.succeeded();
  healthy = false;
  fail(runs);
  await vi.waitFor(() => expect(breaker.reason()).toMatch(/3 failures in a row/), 60_000);
});

test('a check that throws counts as failed', async () => {
  let now = 0;
  const breaker = createBreaker(
    log,
    () => Promise.reject(new Error('engine')),
    () => now,
  );
  for (const run of ['a', 'b', 'c']) breaker.failed('node_memory', 'out', of(run));
  await vi.waitFor(() => expect(breaker.reason()).not.toBeNull());
  now += 1e9;
  await breaker.recheck();
  expect(breaker.reason()).not.toBeNull();
});

test('failures of images, artifact stores and refused limits are not failures of the node', () => {
  expect(isOfTheNode('image_pull')).toBe(false);
  expect(isOfTheNode('artifact_store')).toBe(false);
  expect(isOfTheNode('sandbox_refused')).toBe(false);
  expect(isOfTheNode('evaluation_lost')).toBe(true);
});
