/** What probes are told in each state of a worker: a fake clock, a runtime and a Redis that answer as the test says. */

import type { RuntimeCheck } from '@swefarm/sandbox';
import { expect, test } from 'vitest';
import { createProbes } from './probes.ts';

const LIMITS = { cpu: 'enforced', memory: 'enforced', pids: 'enforced', disk: 'watched' } as const;
const WELL: RuntimeCheck = { usable: true, version: '1', limits: LIMITS, problems: [] };
const GONE: RuntimeCheck = { ...WELL, usable: false, problems: ['no engine socket'] };

function scene() {
  const state = { now: 0, check: WELL, redis: true, checks: 0 };
  const stop = new AbortController();
  const told: string[] = [];
  const probes = createProbes({
    runtime: {
      name: 'docker',
      check: async () => {
        state.checks += 1;
        return state.check;
      },
    },
    log: {
      info: (text: unknown) => told.push(String(text)),
      warn: (fields: unknown) => told.push(`not ready: ${(fields as { reason: string }).reason}`),
    },
    farm: { ping: async () => (state.redis ? 1 : Promise.reject(new Error('away'))) },
    stop: stop.signal,
    now: () => state.now,
  });
  /** Time passes second by second, with heartbeats while Redis takes them. */
  const pass = async (seconds: number, paused: string | null = null): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      state.now += 1_000;
      if (state.redis) probes.beaten(paused);
      probes.whyNotReady();
      await Promise.resolve();
    }
  };
  return { state, stop, probes, told, pass };
}

test('ready: from the first heartbeat that Redis took, until a drain', async () => {
  const { probes, stop, pass } = scene();
  expect(probes.whyNotReady()).toMatch(/starting/);
  await pass(1);
  expect(probes.whyNotReady()).toBeNull();
  stop.abort();
  expect(probes.whyNotReady()).toBe('draining');
  expect(await probes.whyNotAlive()).toBeNull();
});

test('not ready while Redis is away, and alive all the while: a new process would do no better', async () => {
  const { state, probes, pass } = scene();
  await pass(2);
  state.redis = false;
  await pass(6);
  expect(probes.whyNotReady()).toBe('Redis took no heartbeat for 6 s');
  await pass(600);
  expect(await probes.whyNotAlive()).toBeNull();
  state.redis = true;
  await pass(1);
  expect(probes.whyNotReady()).toBeNull();
});

test('not ready while the runtime cannot be used, as its last check found, and ready soon after it can', async () => {
  const { state, probes, told, pass } = scene();
  await pass(20);
  expect(state.checks).toBe(0);
  state.check = GONE;
  await pass(15);
  expect(probes.whyNotReady()).toBe('runtime docker: no engine socket');
  expect(await probes.whyNotAlive()).toBeNull();
  state.check = WELL;
  await pass(10);
  expect(probes.whyNotReady()).toBeNull();
  expect(told).toEqual(['not ready: runtime docker: no engine socket', 'ready again']);
});

test('not ready while it claims nothing: an open breaker, pressure of the node, an operator’s drain', async () => {
  const { probes, pass } = scene();
  await pass(3, 'sick: 3 failures in a row');
  expect(probes.whyNotReady()).toBe('claims nothing: sick: 3 failures in a row');
  await pass(1);
  expect(probes.whyNotReady()).toBeNull();
});

test('not alive when heartbeats stop for a minute while Redis answers: its loops stand still', async () => {
  const { state, probes, pass } = scene();
  await pass(3);
  state.now += 59_000;
  expect(await probes.whyNotAlive()).toBeNull();
  state.now += 2_000;
  expect(await probes.whyNotAlive()).toBe('no heartbeat for 61 s, although Redis answers');
  state.redis = false;
  expect(await probes.whyNotAlive()).toBeNull();
});
