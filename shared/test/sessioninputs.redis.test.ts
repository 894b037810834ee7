import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { newId, type SessionInput } from '../src/index.ts';
import { testFarm, testInstance, testRun } from './farm.ts';

type Farm = Awaited<ReturnType<typeof testFarm>>;

const HOLDER = { worker: 'w1', claim: 'one' };
const command: SessionInput = { kind: 'command', command: 'ls', timeout: null };
const signal = new AbortController().signal;
const answer = (seq: number, bytes?: number) => ({
  ...{ seq, observation: '', exit_code: 0, seconds: 0.1, note: null },
  ...(bytes === undefined ? {} : { content: { bytes, head_bytes: null } }),
});

/** Opens a session as a driver and a worker do. */
async function opened({ runs, sessions }: Farm, clock: 'wall' | 'commands' = 'wall'): Promise<string> {
  const run = testRun({ kind: 'session', group_size: 1 });
  await runs.create(run, [testInstance()]);
  const id = run.run_id;
  await sessions.create({
    ...{ session_id: id, rollout_id: `${id}.a__b.c-1.0`, lease_ms: 60_000 },
    ...{ inputs: 'all', clock },
  });
  expect(await sessions.open(id, HOLDER.worker, HOLDER.claim)).toBe('open');
  return id;
}

test('contents are passed as bytes, once, and only the last one is stored', async () => {
  await using farm = await testFarm();
  const { sessions } = farm;
  const id = await opened(farm);
  expect(await sessions.state(id)).toMatchObject({ inputs: 'all', clock: 'wall', paused: false });
  const bytes = Buffer.from([0, 255, 128, 10, 13]);
  const write: SessionInput = { kind: 'write', path: '/x', mode: 0o755, bytes: 5, sha256: 'aa' };
  expect(await sessions.post(id, 1, write, bytes)).toEqual({ status: 'posted' });
  expect(await sessions.post(id, 1, write, bytes)).toEqual({ status: 'posted' });
  expect(await sessions.post(id, 1, { ...write, sha256: 'bb' }, bytes)).toEqual({ status: 'differs' });
  expect(await sessions.next(id, HOLDER, 0, 0, signal)).toMatchObject({ input: write, content: bytes });
  await sessions.reply(id, answer(1));
  expect(await sessions.next(id, HOLDER, 0, 0, signal)).toMatchObject({ input: write, content: null });

  await sessions.post(id, 2, { kind: 'read', path: '/x', max_bytes: 9 });
  await sessions.reply(id, answer(2, 5), bytes);
  await sessions.reply(id, answer(2, 1), Buffer.from('x'));
  expect(await sessions.answer(id, 2, 0)).toEqual({
    ...{ status: 'answer', answer: answer(2, 5), content: bytes },
  });
  await sessions.post(id, 3, { kind: 'diff' });
  await sessions.reply(id, answer(3, 0), Buffer.alloc(0));
  expect(await sessions.answer(id, 3, 0)).toMatchObject({ status: 'answer', content: Buffer.alloc(0) });
  expect(await sessions.answer(id, 2, 0)).toEqual({ status: 'forgotten' });
});

test('a stopped clock counts until it is started, or until the next input', async () => {
  await using farm = await testFarm();
  const { sessions } = farm;
  const id = await opened(farm);
  const pausedMs = () => sessions.pausedMs(id, HOLDER.claim);
  expect(await pausedMs()).toBe(0);
  expect(await sessions.setClock(id, true)).toBe('ok');
  expect(await sessions.setClock(id, true)).toBe('ok');
  expect(await sessions.state(id)).toMatchObject({ paused: true });
  await sleep(30);
  const first = await pausedMs();
  expect(first).toBeGreaterThanOrEqual(25);
  expect(await sessions.setClock(id, false)).toBe('ok');
  expect(await sessions.setClock(id, false)).toBe('ok');
  const stopped = await pausedMs();
  await sleep(30);
  expect(await pausedMs()).toBe(stopped);

  await sessions.setClock(id, true);
  await sleep(30);
  await sessions.post(id, 1, command);
  expect(await sessions.setClock(id, true)).toBe('busy');
  const next = await sessions.next(id, HOLDER, 0, 0, signal);
  expect(next).toMatchObject({ status: 'input', pausedMs: expect.any(Number) });
  const total = await pausedMs();
  expect(total).toBeGreaterThanOrEqual(stopped + 25);
  expect(await sessions.state(id)).toMatchObject({ paused: false });
  await sessions.reply(id, answer(1));
  expect(await sessions.state(id)).toMatchObject({ paused: false });
  await sessions.end(id, 'submitted');
  expect(await sessions.setClock(id, true)).toBe('ended');
  expect(await sessions.setClock(newId(), true)).toBe('gone');
});

test('the clock of commands stands still between them', async () => {
  await using farm = await testFarm();
  const { sessions } = farm;
  const id = await opened(farm, 'commands');
  expect(await sessions.state(id)).toMatchObject({ clock: 'commands', paused: true });
  await sleep(20);
  await sessions.post(id, 1, command);
  await sessions.next(id, HOLDER, 0, 0, signal);
  const before = await sessions.pausedMs(id, HOLDER.claim);
  expect(before).toBeGreaterThanOrEqual(15);
  await sleep(20);
  expect(await sessions.pausedMs(id, HOLDER.claim)).toBe(before);
  await sessions.reply(id, answer(1));
  await sleep(20);
  expect(await sessions.pausedMs(id, HOLDER.claim)).toBeGreaterThanOrEqual(before + 15);
});
