import type { RuntimeCheck } from '@swefarm/sandbox';
import { expect, test } from 'vitest';
import { createProbes } from './probes.ts';

const LIMITS = { cpu: 'enforced', memory: 'enforced', pids: 'enforced', disk: 'watched' } as const;
const USABLE: RuntimeCheck = { usable: true, version: '1', limits: LIMITS, problems: [] };
const UNUSABLE: RuntimeCheck = { ...USABLE, usable: false, problems: ['no engine socket'] };

function scene() {
  const state = { now: 0, check: USABLE, redis: true, checks: 0 };
  const stop = new AbortController();
  const logged: string[] = [];
  const probes = createProbes({
    runtime: {
      name: 'docker',
      check: async () => {
        state.checks += 1;
        return state.check;
      },
    },
    log: {
      info: (text: unknown) => logged.push(String(text)),
      warn: (fields: unknown) => logged.push(`not ready: ${(fields as { reason: string }).reason}`),
    },
    farm: { ping: async () => (state.redis ? 1 : Promise.reject(new Error('away'))) },
    stop: stop.signal,
    now: () => state.now,
  });
  /** Advances the clock second by second, with a heartbeat each while Redis is available. */
  const pass = async (seconds: number, paused: string | null = null): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      state.now += 1_000;
      if (state.redis) probes.beaten(paused);
      probes.whyNotReady();
      await Promise.resolve();
    }
  };
  return { state, stop, probes, logged, pass };
}

test('a worker is ready from its first heartbeat until its drain', async () => {
  const { probes, stop, pass } = scene();
  expect(probes.whyNotReady()).toMatch(/starting/);
  await pass(1);
  expect(probes.whyNotReady()).toBeNull();
  stop.abort();
  expect(probes.whyNotReady()).toBe('draining');
  expect(await probes.whyNotAlive()).toBeNull();
});

test('a worker without Redis is alive and not ready', async () => {
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

test('a worker is not ready while the last check of its runtime failed', async () => {
  const { state, probes, logged, pass } = scene();
  await pass(20);
  expect(state.checks).toBe(0);
  state.check = UNUSABLE;
  await pass(15);
  expect(probes.whyNotReady()).toBe('runtime docker: no engine socket');
  expect(await probes.whyNotAlive()).toBeNull();
  state.check = USABLE;
  await pass(10);
  expect(probes.whyNotReady()).toBeNull();
  expect(logged).toEqual(['not ready: runtime docker: no engine socket', 'ready again']);
});

test('a worker that claims nothing is not ready', async () => {
  const { probes, pass } = scene();
  await pass(3, 'unhealthy: 3 failures in a row');
  expect(probes.whyNotReady()).toBe('claims nothing: unhealthy: 3 failures in a row');
  await pass(1);
  expect(probes.whyNotReady()).toBeNull();
});

test('a worker whose heartbeats stop for a minute while Redis answers is not alive', async () => {
  const { state, probes, pass } = scene();
  await pass(3);
  state.now += 59_000;
  expect(await probes.whyNotAlive()).toBeNull();
  state.now += 2_000;
  expect(await probes.whyNotAlive()).toBe('no heartbeat for 61 s, although Redis answers');
  state.redis = false;
  expect(await probes.whyNotAlive()).toBeNull();
});
