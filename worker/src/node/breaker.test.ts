import { silentLog } from '@swefarm/shared';
import { expect, test, vi } from 'vitest';
import { isOfTheNode, NodeBreaker } from './breaker.ts';

const log = silentLog() as never;
const of = (run: string) => ({ run, image: 'a/b', instance: 'i' });

test('three failures of the node in a row and a failed check make it sick; a passed check lets it try once', async () => {
  let now = 0;
  let well = false;
  let asked = 0;
  const check = (): Promise<boolean> => {
    asked += 1;
    return Promise.resolve(well);
  };
  const sick = new NodeBreaker(log, check, () => now);
  sick.failed('sandbox_start', 'no', of('a'));
  sick.failed('sandbox_start', 'no', of('b'));
  sick.succeeded();
  sick.failed('engine_unreachable', 'gone', of('a'));
  sick.failed('policy_unreachable', 'not of this node', of('a'));
  sick.failed('engine_unreachable', 'gone', of('b'));
  expect(sick.reason()).toBeNull();
  sick.failed('node_disk', 'full', of('b'));
  await vi.waitFor(() => expect(sick.reason()).toMatch(/3 failures in a row, last node_disk: full/));

  await sick.recheck();
  expect(asked).toBe(1);
  now += 15_000;
  await sick.recheck();
  well = true;
  await sick.recheck();
  expect([asked, sick.reason() === null]).toEqual([2, false]);
  now += 30_000;
  await sick.recheck();
  expect([asked, sick.reason()]).toEqual([3, null]);
  well = false;
  sick.failed('sandbox_lost', 'again', of('a'));
  await vi.waitFor(() => expect(sick.reason()).not.toBeNull());
});

test.each([
  ['one run', ['greedy', 'greedy', 'greedy']],
  ['two runs', ['greedy', 'other', 'greedy']],
])('failures of %s make a node sick only when a sandbox of our own fails too', async (_name, runs) => {
  let well = true;
  const asked: unknown[] = [];
  const sick = new NodeBreaker(log, (last) => {
    asked.push(last);
    return Promise.resolve(well);
  });
  const fail = (some: string[]) => {
    for (const run of some) sick.failed('sandbox_lost', 'the container stopped', of(run));
  };
  fail(runs.slice(0, 2));
  expect(asked).toEqual([]);
  fail(runs.slice(2));
  await vi.waitFor(() => expect(asked).toEqual([of('greedy')]), 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  // They do not count against the next run's rollouts either.
  fail(runs.slice(0, 2));
  expect(sick.reason()).toBeNull();
  sick.succeeded();
  well = false;
  fail(runs);
  await vi.waitFor(() => expect(sick.reason()).toMatch(/3 failures in a row/), 60_000);
});

test('a check that throws is a check that failed', async () => {
  let now = 0;
  const sick = new NodeBreaker(
    log,
    () => Promise.reject(new Error('engine')),
    () => now,
  );
  for (const run of ['a', 'b', 'c']) sick.failed('node_memory', 'out', of(run));
  await vi.waitFor(() => expect(sick.reason()).not.toBeNull());
  now += 1e9;
  await sick.recheck();
  expect(sick.reason()).not.toBeNull();
});

test('instances, wishes and policies make no node sick', () => {
  expect(isOfTheNode('image_pull')).toBe(false);
  expect(isOfTheNode('artifact_store')).toBe(false);
  expect(isOfTheNode('sandbox_refused')).toBe(false);
  expect(isOfTheNode('evaluation_lost')).toBe(true);
});
