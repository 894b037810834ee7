import { expect, test } from 'vitest';
import { testFarm, testInstance, testResult, testRun } from './farm.ts';

const BY = { worker: 'w1', node: 'n1' };

test('attempts are numbered, ends are kept, the first word about an attempt stands', async () => {
  await using farm = await testFarm();
  const run = testRun();
  await farm.runs.create(run, [testInstance()]);
  const id = `${run.run_id}.a__b.c-1.0`;
  expect(await farm.journal.claim(id, BY)).toEqual({
    status: 'claimed',
    attempt: 1,
    previous: [],
    cancelled: null,
  });
  await farm.journal.end(id, 1, {
    stage: 'image',
    class: 'image_pull',
    cause: `two\nlines ${'x'.repeat(500)}`,
  });
  await farm.journal.end(id, 1, { stage: null, class: 'done', cause: null });
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

test('a hundred claims at once get a hundred numbers', async () => {
  await using farm = await testFarm();
  const run = testRun();
  await farm.runs.create(run, [testInstance()]);
  const id = `${run.run_id}.a__b.c-1.0`;
  const claims = await Promise.all(Array.from({ length: 100 }, () => farm.journal.claim(id, BY)));
  expect(new Set(claims.map((claim) => claim.status === 'claimed' && claim.attempt)).size).toBe(100);
});

test('a claim tells of a commit, a cancel and a run that is gone', async () => {
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

test('superseded names what another attempt has, or whose run is gone, and nothing else', async () => {
  await using farm = await testFarm();
  const run = testRun({ group_size: 5 });
  await farm.runs.create(run, [testInstance()]);
  const id = (index: number): string => `${run.run_id}.a__b.c-1.${index}`;
  for (const index of [0, 1, 2, 3]) await farm.journal.claim(id(index), BY);
  await farm.journal.claim(id(1), { worker: 'w2', node: 'n2' });
  await farm.commit(run, testResult(run.run_id, 2, { attempt: 9 }));
  await farm.commit(run, testResult(run.run_id, 3, { attempt: 1 }));
  const running = [0, 1, 2, 3].map((index) => ({ rollout_id: id(index), attempt: 1 }));
  const over = await farm.journal.superseded([...running, { rollout_id: 'other.x.0', attempt: 1 }]);
  expect([...over].sort()).toEqual([id(1), id(2), 'other.x.0'].sort());
});

test('retried are those that were begun more than once and have no result, of however many', async () => {
  await using farm = await testFarm();
  const run = testRun({ group_size: 600 });
  await farm.runs.create(run, [testInstance()]);
  const id = (index: number): string => `${run.run_id}.a__b.c-1.${index}`;
  expect(await farm.journal.readRetried(run.run_id)).toEqual(new Map());
  await Promise.all(Array.from({ length: 600 }, (_, index) => farm.journal.claim(id(index), BY)));
  for (const index of [7, 8]) await farm.journal.claim(id(index), { worker: 'w2', node: 'n2' });
  await farm.commit(run, testResult(run.run_id, 8, { attempt: 2 }));
  const retried = await farm.journal.readRetried(run.run_id);
  expect([...retried.keys()]).toEqual([id(7)]);
  expect(retried.get(id(7))).toMatchObject([BY, { worker: 'w2', node: 'n2' }]);
});
