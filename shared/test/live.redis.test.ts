import { expect, test } from 'vitest';
import type { LiveRollout, LiveTurn } from '../src/index.ts';
import { openFarm } from '../src/index.ts';
import { keysOf, mortal, testConfig } from './farm.ts';

const state = (rollout_id: string, over: Partial<LiveRollout> = {}): LiveRollout => ({
  ...{ rollout_id, attempt: 1, worker: 'w1', node: 'n1', stage: 'agent', turns: 0, claimed_at: 1, at: 1 },
  ...over,
});

const turn = (number: number): LiveTurn => ({
  ...{ attempt: 1, turn: number, at: number, messages: [{ role: 'assistant', content: `say ${number}` }] },
  ...{ answer: 0, finish_reason: 'stop', model_seconds: 1, usage: null, commands: [] },
  policy_version: { start: null, end: null },
});

test('running rollouts are listed by worker and run until they end', async () => {
  await using farm = await openFarm(testConfig(), 'producer');
  await farm.live.mark(state('r1.a.0'));
  await farm.live.mark(state('r1.a.0', { stage: 'evaluation', turns: 3 }));
  await farm.live.mark(state('r2.a.0', { worker: 'w2' }));
  await farm.live.mark(state('r1.a.1', { worker: 'dead' }));
  const running = await farm.live.running(['w1', 'w2']);
  expect(running.map((one) => [one.rollout_id, one.stage, one.turns])).toEqual([
    ['r1.a.0', 'evaluation', 3],
    ['r2.a.0', 'agent', 0],
  ]);
  expect(await farm.live.running(['w1', 'w2'], 'r2')).toHaveLength(1);
  await farm.live.end('w1', 'r1.a.0');
  expect(await farm.live.running(['w1'])).toEqual([]);
});

test('turns are read from a cursor, bounded in number, and expire', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  for (let number = 1; number <= 5; number++) await farm.live.turn('r1.a.0', turn(number), 3);
  const first = await farm.live.turns('r1.a.0');
  expect(first.turns.map((one) => one.turn)).toEqual([3, 4, 5]);
  expect(await farm.live.turns('r1.a.0', first.last_id)).toEqual({ turns: [], last_id: first.last_id });
  await farm.live.turn('r1.a.0', turn(6), 3);
  expect((await farm.live.turns('r1.a.0', first.last_id)).turns.map((one) => one.turn)).toEqual([6]);
  await farm.live.mark(state('r1.a.0'));
  expect(await mortal(config)).toEqual({
    'farm-id': false,
    'live:turns:r1.a.0': true,
    'live:worker:w1': true,
  });
  await farm.live.end('w1', 'r1.a.0');
  expect(await keysOf(config)).toEqual(['farm-id', 'live:turns:r1.a.0']);
});

test('writes within a tenth of a second are sent together, in order', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  await farm.live.mark(state('r1.a.0'));
  const ids = Array.from({ length: 20 }, (_, at) => `r1.b.${at}`);
  await Promise.all(
    ids.flatMap((id) => [
      farm.live.mark(state(id, { turns: 2 })),
      farm.live.turn(id, turn(1), 3),
      farm.live.turn(id, turn(2), 3),
    ]),
  );
  expect((await farm.live.running(['w1'])).map((one) => one.rollout_id).sort()).toEqual(
    ['r1.a.0', ...ids].sort(),
  );
  const told = await Promise.all(ids.map((id) => farm.live.turns(id)));
  for (const { turns } of told) expect(turns.map((one) => one.turn)).toEqual([1, 2]);
  // Two transactions would be a tenth of a second apart.
  const times = told.map(({ last_id }) => Number(last_id.split('-')[0]));
  expect(Math.max(...times) - Math.min(...times)).toBeLessThan(100);
});
