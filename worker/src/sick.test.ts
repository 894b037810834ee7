import { silentLog } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { createSick, isOfTheNode } from './sick.ts';

test('three failures of the node in a row make it sick; a passed check lets it try once', async () => {
  let now = 0;
  const sick = createSick(silentLog() as never, () => now);
  sick.failed('sandbox_start', 'no');
  sick.failed('sandbox_start', 'no');
  sick.succeeded();
  sick.failed('engine_unreachable', 'gone');
  sick.failed('policy_unreachable', 'not of this node');
  sick.failed('engine_unreachable', 'gone');
  expect(sick.reason()).toBeNull();
  sick.failed('node_disk', 'full');
  expect(sick.reason()).toMatch(/3 failures in a row, last node_disk: full/);

  let asked = 0;
  const check = (well: boolean) => () => {
    asked += 1;
    return Promise.resolve(well);
  };
  await sick.recheck(check(true));
  expect(asked).toBe(0);
  now += 15_000;
  await sick.recheck(check(false));
  await sick.recheck(check(true));
  expect([asked, sick.reason() === null]).toEqual([1, false]);
  now += 30_000;
  await sick.recheck(check(true));
  expect([asked, sick.reason()]).toEqual([2, null]);
  sick.failed('sandbox_lost', 'again');
  expect(sick.reason()).not.toBeNull();
});

test('a check that throws is a check that failed', async () => {
  let now = 0;
  const sick = createSick(silentLog() as never, () => now);
  for (let times = 0; times < 3; times++) sick.failed('node_memory', 'out');
  now += 1e9;
  await sick.recheck(() => Promise.reject(new Error('engine')));
  expect(sick.reason()).not.toBeNull();
});

test('instances and policies make no node sick', () => {
  expect(isOfTheNode('image_pull')).toBe(false);
  expect(isOfTheNode('artifact_store')).toBe(false);
  expect(isOfTheNode('evaluation_lost')).toBe(true);
});
