import { expect, test } from 'vitest';
import { newId, type SessionInput } from '../src/index.ts';
import { testFarm, testInstance, testResult, testRun } from './farm.ts';

const command = (text: string): SessionInput => ({ kind: 'command', command: text, timeout: null });
const SUBMIT: SessionInput = { kind: 'submit' };
const answer = (seq: number, observation: string) => ({
  ...{ seq, observation, exit_code: 0, seconds: 0.1, note: null },
});

async function aSession(farm: Awaited<ReturnType<typeof testFarm>>, lease_ms = 60_000) {
  const run = testRun({ kind: 'session', group_size: 1 });
  await farm.runs.create(run, [testInstance()]);
  const session = { session_id: run.run_id, rollout_id: `${run.run_id}.a__b.c-1.0`, lease_ms };
  await farm.sessions.create(session);
  return { ...session, id: run.run_id, run };
}

test('driver and worker exchange commands and answers; repetitions change nothing', async () => {
  await using farm = await testFarm();
  const { sessions } = farm;
  const signal = new AbortController().signal;
  const session = await aSession(farm);
  const { id } = session;
  expect(await sessions.create(session)).toBe(false);
  expect(await sessions.state(id)).toMatchObject({ state: 'waiting', said: 0, lease_seconds: 60 });

  expect(await sessions.post(id, 2, command('two'))).toEqual({ status: 'gap', posted: 0 });
  expect(await sessions.post(id, 1, command('one'))).toEqual({ status: 'posted' });
  expect(await sessions.post(id, 1, command('one'))).toEqual({ status: 'posted' });
  expect(await sessions.post(id, 1, command('another'))).toEqual({ status: 'differs' });
  expect(await sessions.answer(id, 1, 0)).toEqual({ status: 'waiting' });

  const holder = { worker: 'w1', claim: 'one' };
  expect(await sessions.open(id, 'w1', 'one')).toBe('open');
  expect(await sessions.state(id)).toMatchObject({ state: 'open' });
  const one = await sessions.next(id, holder, 0, 60_000, signal);
  expect(one).toEqual({ status: 'input', pausedMs: 0, seq: 1, input: command('one'), content: null });
  const answered = sessions.answer(id, 1, 60_000);
  await sessions.reply(id, answer(1, 'first'));
  await sessions.reply(id, answer(1, 'never'));
  expect(await answered).toEqual({ status: 'answer', answer: answer(1, 'first'), content: null });

  // A notification ends the wait early.
  const two = sessions.next(id, holder, 1, 600_000, signal);
  expect(await sessions.post(id, 2, command('two'))).toEqual({ status: 'posted' });
  expect(await two).toMatchObject({ status: 'input', seq: 2 });
  expect(await sessions.open(id, 'w2', 'two')).toBe('lost');
  expect(await sessions.next(id, { worker: 'w2', claim: 'two' }, 1, 0, signal)).toEqual({ status: 'gone' });

  expect(await sessions.post(id, 0, SUBMIT)).toEqual({ status: 'posted' });
  expect(await sessions.post(id, 0, SUBMIT)).toEqual({ status: 'posted' });
  expect(await sessions.post(id, 4, command('late'))).toEqual({ status: 'submitted' });
  expect(await sessions.next(id, holder, 2, 0, signal)).toMatchObject({
    ...{ status: 'input', seq: 3, input: SUBMIT },
  });
  await sessions.end(id, 'submitted');
  await sessions.end(id, 'failed');
  expect(await sessions.state(id)).toMatchObject({
    state: 'grading',
    end: 'submitted',
    said: 3,
    answered: 1,
  });
  expect(await sessions.post(id, 4, command('late'))).toEqual({ status: 'ended', end: 'submitted' });
  expect(await sessions.answer(id, 2, 60_000)).toEqual({ status: 'ended' });
  expect(await sessions.renew([id, 'unknown'])).toEqual([]);
  expect(await sessions.live()).toEqual([]);
  await farm.commit(session.run, testResult(id, 0));
  expect(await sessions.state(id)).toMatchObject({ state: 'ended' });
});

test('a session without commands may be opened again; an unknown one is gone', async () => {
  await using farm = await testFarm();
  const { id } = await aSession(farm);
  expect(await farm.sessions.open(id, 'w1', 'one')).toBe('open');
  expect(await farm.sessions.open(id, 'w2', 'two')).toBe('open');
  const unknown = newId();
  expect(await farm.sessions.open(unknown, 'w', 'one')).toBe('gone');
  expect(await farm.sessions.state(unknown)).toBe(null);
  expect(await farm.sessions.post(unknown, 1, command('x'))).toEqual({ status: 'gone' });
  expect(await farm.sessions.answer(unknown, 1, 0)).toEqual({ status: 'gone' });
});

test('a lease expires without its driver, and every call renews it', async () => {
  await using farm = await testFarm();
  const { sessions } = farm;
  const dead = await aSession(farm, 1);
  const alive = await aSession(farm);
  await expect.poll(() => sessions.open(dead.id, 'w1', 'one')).toBe('expired');
  await expect.poll(() => sessions.overdue(0)).toEqual([dead.id]);
  expect(await sessions.overdue(3600_000)).toEqual([]);
  expect(await sessions.open(alive.id, 'w1', 'one')).toBe('open');
  expect(await sessions.isExpired(alive.id, 'one')).toBe(false);
  expect((await sessions.live()).sort()).toEqual([dead.id, alive.id].sort());
  expect(await sessions.renew([dead.id, alive.id])).toEqual([dead.id, alive.id]);
});

test('only the last answers are stored', async () => {
  await using farm = await testFarm();
  const { id } = await aSession(farm);
  for (let seq = 1; seq <= 20; seq++) {
    expect(await farm.sessions.post(id, seq, command(`${seq}`))).toEqual({ status: 'posted' });
    await farm.sessions.reply(id, answer(seq, `${seq}`));
  }
  expect(await farm.sessions.post(id, 1, command('1'))).toEqual({ status: 'forgotten', posted: 20 });
  expect(await farm.sessions.post(id, 5, command('5'))).toEqual({ status: 'posted' });
  expect(await farm.sessions.answer(id, 5, 0)).toMatchObject({ status: 'answer' });
});

test('sessions are not in the list of runs', async () => {
  await using farm = await testFarm();
  const { id } = await aSession(farm);
  expect(await farm.runs.get(id)).toMatchObject({ kind: 'session' });
  expect(await farm.runs.list()).toEqual([]);
});
