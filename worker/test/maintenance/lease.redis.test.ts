/** One worker at a time does the maintenance; another takes over when it stops or loses its lease. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import type { Duty } from '../../src/maintenance/duty.ts';
import { runMaintenance } from '../../src/maintenance/maintenance.ts';
import { scene } from './farm.ts';

test('one worker at a time does the maintenance, and the next takes over when it stops', async () => {
  const { deps } = await scene();
  const rounds: string[] = [];
  const duty = (worker: string): Duty => ({
    name: 'count',
    everyMs: 10,
    run: async () => void rounds.push(worker),
  });
  const failing: Duty = { name: 'failing', everyMs: 10, run: () => Promise.reject(new Error('no')) };
  const [one, two] = [new AbortController(), new AbortController()];
  const first = runMaintenance('one', [failing, duty('one')], deps, one.signal);
  await until(() => rounds.length >= 2);
  const second = runMaintenance('two', [duty('two')], deps, two.signal);
  const before = rounds.length;
  await until(() => rounds.length >= before + 3);
  expect(new Set(rounds)).toEqual(new Set(['one']));
  one.abort();
  await first;
  await until(() => rounds.includes('two'));
  two.abort();
  await second;
  expect(await deps.farm.leases.acquire('keeper', 'three', 1_000)).toBe(true);
});

test('a worker that loses the lease stops during a duty', async () => {
  const { deps } = await scene();
  let ended = false;
  const stop = new AbortController();
  const endless: Duty = {
    name: 'endless',
    everyMs: 10,
    run: async (_deps, signal) => {
      await sleep(120_000, undefined, { signal }).catch(() => undefined);
      ended = true;
    },
  };
  const maintaining = runMaintenance('one', [endless], deps, stop.signal);
  while (await deps.farm.leases.acquire('keeper', 'two', 1)) await sleep(20);
  await deps.farm.leases.release('keeper', 'one');
  expect(await deps.farm.leases.acquire('keeper', 'two', 60_000)).toBe(true);
  await until(() => ended);
  stop.abort();
  await maintaining;
});
