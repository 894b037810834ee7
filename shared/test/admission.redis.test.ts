import { rawRedis } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { type AdmissionState, fixedPool, openFarm } from '../src/index.ts';
import { testConfig, testFarm } from './farm.ts';

const state = (limit: number | null): AdmissionState => ({
  ...{
    limit,
    threshold: null,
    wait_polls: 0,
    queue_polls: 0,
    refused: 0,
    endpoints: [],
    reason: null,
    at: 1,
  },
});
const member = (rollout: string, plays = false, order = 1) => ({ rollout, plays, order });
const names = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `r${from + at}`);

test('all wait until the pool has a state, then as many play as its limit allows', async () => {
  await using farm = await testFarm();
  const ask = (...rollouts: string[]) =>
    farm.admissions.exchange(
      'p',
      rollouts.map((one) => member(one)),
      0,
    );
  expect(await ask('a', 'b')).toEqual({
    ...{ limit: null, known: false, playing: 0, waiting: 2, permissions: ['wait', 'wait'], called: [] },
  });
  await farm.admissions.setState('p', state(1.9));
  expect(await ask('a', 'b')).toEqual({
    ...{ limit: 1, known: true, playing: 1, waiting: 1, permissions: ['play', 'wait'], called: [] },
  });
  await farm.admissions.leave('p', ['a']);
  expect((await ask('b')).permissions).toEqual(['play']);
  await farm.admissions.setState('p', state(null));
  expect(await ask('c', 'd', 'e')).toMatchObject({ limit: null, known: true, playing: 4, waiting: 0 });
});

test('workers share the limit; the lowest priority goes first', async () => {
  await using farm = await testFarm();
  await farm.admissions.setState('p', state(2));
  const first = await farm.admissions.exchange('p', [member('a'), member('b'), member('c')], 0);
  expect(first.permissions).toEqual(['play', 'play', 'wait']);
  const second = await farm.admissions.exchange('p', [member('d'), member('v', false, 0)], 0);
  expect(second.permissions).toEqual(['wait', 'wait']);
  const order: string[] = [];
  for (const gone of ['a', 'b', 'v', 'c']) {
    await farm.admissions.leave('p', [gone]);
    const left = ['c', 'd', 'v'].filter((one) => !order.includes(one));
    const { permissions } = await farm.admissions.exchange(
      'p',
      left.map((one) => member(one)),
      0,
    );
    order.push(...left.filter((_, at) => permissions[at] === 'play'));
  }
  expect(order).toEqual(['v', 'c', 'd']);
});

test('a lower limit suspends the rollouts that were admitted last, and they play again first', async () => {
  await using farm = await testFarm();
  await farm.admissions.setState('p', state(4));
  const play = () =>
    farm.admissions.exchange(
      'p',
      names(0, 6).map((one) => member(one, one < 'r4')),
      0,
    );
  expect((await play()).permissions).toEqual(['play', 'play', 'play', 'play', 'wait', 'wait']);
  await farm.admissions.setState('p', state(2));
  const lower = await play();
  expect(lower).toMatchObject({ limit: 2, playing: 4, waiting: 2 });
  expect(lower.permissions).toEqual(['play', 'play', 'suspended', 'suspended', 'wait', 'wait']);
  await farm.admissions.leave('p', ['r0']);
  const { permissions } = await farm.admissions.exchange(
    'p',
    names(1, 6).map((one) => member(one, one < 'r4')),
    0,
  );
  expect(permissions).toEqual(['play', 'play', 'suspended', 'wait', 'wait']);
});

test('a free slot goes to a waiting rollout, also without a worker', async () => {
  await using farm = await testFarm();
  await farm.admissions.setState('p', state(1));
  const ask = (...of: ReturnType<typeof member>[]) => farm.admissions.exchange('p', of, 0);
  await ask(member('a'), member('late', false, 9), member('early', false, 3));
  await farm.admissions.leave('p', ['a']);
  expect(await ask()).toMatchObject({ playing: 1, waiting: 1, called: ['early'] });
  // The slot is reserved until a worker claims the job. `called` names the rollout only once.
  expect(await ask(member('new', false, 1))).toMatchObject({ permissions: ['wait'], called: [] });
  expect(await ask(member('early', false, 3))).toMatchObject({ permissions: ['play'], called: [] });
});

test('an admitted rollout that has not started waits again if the limit falls', async () => {
  await using farm = await testFarm();
  await farm.admissions.setState('p', state(2));
  await farm.admissions.exchange('p', [member('a'), member('b')], 0);
  await farm.admissions.setState('p', state(1));
  const next = await farm.admissions.exchange('p', [member('a', true), member('b')], 0);
  expect(next).toMatchObject({ playing: 1, waiting: 1, permissions: ['play', 'wait'] });
});

test('rollouts of a dead worker free their slots, and may return', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const send = rawRedis(farm);
  await farm.admissions.setState('p', state(2));
  await farm.admissions.exchange('p', [member('dead'), member('cut')], 0);
  for (const one of ['dead', 'cut']) await send('ZADD', `${config.redis_prefix}:admission:lapses:p`, 1, one);
  const next = await farm.admissions.exchange('p', [member('a'), member('b')], 0);
  expect(next).toMatchObject({ playing: 2, permissions: ['play', 'play'] });
  const back = await farm.admissions.exchange('p', [member('cut', true)], 0);
  expect(back).toMatchObject({ playing: 3, permissions: ['suspended'] });
});

test('refusals are added up, and a fixed limit needs no state', async () => {
  await using farm = await testFarm();
  const pool = fixedPool('p', 1);
  expect((await farm.admissions.exchange(pool, [member('a'), member('b')], 2)).permissions).toEqual([
    'play',
    'wait',
  ]);
  await farm.admissions.exchange(pool, [], 3);
  expect(await farm.admissions.state(pool)).toEqual({ state: null, refused: 5 });
  await farm.admissions.setState('q', state(7));
  await farm.admissions.exchange('q', [], 0);
  expect(await farm.admissions.list()).toEqual([
    { pool: 'p#1', limit: 1, playing: 1, waiting: 1, state: null },
    { pool: 'q', limit: 7, playing: 0, waiting: 0, state: state(7) },
  ]);
});
