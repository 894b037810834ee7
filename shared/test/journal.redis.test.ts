import { expect, test } from 'vitest';
import { claimed, nth, openRun, testFarm, testInstance, testResult, testRun } from './farm.ts';

const BY = { worker: 'w1', node: 'n1' };

test('attempts are numbered, and the first end of an attempt is final', async () => {
  const { farm, id: idOf } = await openRun();
  const id = idOf(0);
  const first = await farm.journal.claim(id, BY);
  const claim = first.status === 'claimed' ? first.claim : '';
  expect(first).toEqual({
    status: 'claimed',
    attempt: 1,
    claim: expect.stringMatching(/^[a-z][0-9a-z]{11}$/),
    previous: [],
    cancelled: null,
  });
  await farm.journal.end(id, claim, {
    stage: 'image',
    class: 'image_pull',
    cause: `two\nlines ${'x'.repeat(500)}`,
  });
  await farm.journal.end(id, claim, { stage: null, class: 'done', cause: null });
  const second = await farm.journal.claim(id, { worker: 'w2', node: 'n2' });
  expect(second).toMatchObject({
    attempt: 2,
    previous: [
      {
        attempt: 1,
        worker: 'w1',
        end: { class: 'image_pull', cause: expect.stringMatching(/^two lines x{190}$/) },
      },
    ],
  });
  const entries = await farm.journal.read(id);
  expect(entries.map(({ end }) => end?.class ?? null)).toEqual(['image_pull', null]);
  expect(Math.abs((entries[0]?.ended_at ?? 0) - Date.now())).toBeLessThan(10_000);
});

test('a hundred concurrent claims get a hundred numbers', async () => {
  const { farm, id } = await openRun();
  const claims = await Promise.all(Array.from({ length: 100 }, () => farm.journal.claim(id(0), BY)));
  expect(new Set(claims.map((claim) => claim.status === 'claimed' && claim.attempt)).size).toBe(100);
});

test('a claim reports a commit, a cancellation and an expired run', async () => {
  await using farm = await testFarm();
  const run = testRun();
  expect(await farm.journal.claim('no.such.0', BY)).toEqual({ status: 'gone' });
  await farm.runs.create(run, [testInstance()]);
  await farm.commit(run, testResult(run.run_id, 0));
  expect(await farm.journal.claim(`${run.run_id}.a__b.c-1.0`, BY)).toEqual({
    status: 'committed',
    attempt: 1,
    outcome: 'judged',
  });
  await farm.cancel.cancelRollouts([`${run.run_id}.a__b.c-1.1`]);
  expect(await farm.journal.claim(`${run.run_id}.a__b.c-1.1`, BY)).toMatchObject({ cancelled: 'cancelled' });
  expect(await farm.journal.claim(`${run.run_id}.a__b.c-1.2`, BY)).toMatchObject({ cancelled: null });
});

test('an attempt stops if another one claimed or committed; a lost claim is restored', async () => {
  const { farm, run, id } = await openRun({ group_size: 8 });
  const attempts = await Promise.all([0, 1, 2, 3].map((index) => claimed(farm, id(index))));
  const running = attempts.map((attempt, index) => ({ rollout_id: id(index), ...attempt }));
  await claimed(farm, id(1), 'w2');
  // A commit of maintenance has the number of the running attempt, but another claim.
  await farm.commit(run, testResult(run.run_id, 2, { ...attempts[2], claim: 'keeper' }));
  await farm.commit(run, testResult(run.run_id, 3, { ...attempts[3] }));
  const gone = { rollout_id: 'other.x.0', ...nth(1) };
  // Claims that are not in the journal, the second with the number of another attempt.
  const lost = { rollout_id: id(4), ...nth(2) };
  await claimed(farm, id(5), 'w2');
  const taken = { rollout_id: id(5), ...nth(1) };
  const over = await farm.journal.renewAttempts(BY, [...running, gone, lost, taken]);
  expect([...over].sort()).toEqual([id(1), id(2), 'other.x.0', id(5)].sort());
  expect(await farm.journal.read(id(4))).toMatchObject([{ ...BY, ...nth(2), ended_at: null }]);
  const next = await farm.journal.claim(id(4), BY);
  expect(next).toMatchObject({ attempt: 3, previous: [nth(2)] });
  expect(await farm.journal.renewAttempts(BY, [lost])).toEqual(new Set([id(4)]));
});

test('retried rollouts are uncommitted ones with several attempts', async () => {
  const { farm, run, id } = await openRun({ group_size: 600 });
  expect(await farm.journal.readRetried(run.run_id)).toEqual(new Map());
  await Promise.all(Array.from({ length: 600 }, (_, index) => farm.journal.claim(id(index), BY)));
  for (const index of [7, 8]) await farm.journal.claim(id(index), { worker: 'w2', node: 'n2' });
  await farm.commit(run, testResult(run.run_id, 8, { attempt: 2 }));
  const retried = await farm.journal.readRetried(run.run_id);
  expect([...retried.keys()]).toEqual([id(7)]);
  expect(retried.get(id(7))).toMatchObject([BY, { worker: 'w2', node: 'n2' }]);
});
