import { expect, test } from 'vitest';
import { openFarm } from '../src/index.ts';
import { keysOf, openRun, testConfig, testInstance, testResult, testRun } from './farm.ts';

test('a thousand concurrent commits of the same ids leave exactly one result each', async () => {
  const config = testConfig();
  await using one = await openFarm(config, 'worker');
  await using two = await openFarm(config, 'worker');
  const run = testRun({ group_size: 10 });
  await one.runs.create(run, [testInstance()]);
  const commits = Array.from({ length: 1000 }, (_, n) => {
    const farm = n % 2 ? one : two;
    return farm.commit(
      run,
      testResult(run.run_id, n % 10, { attempt: 1 + Math.floor(n / 10), worker: `w${n}` }),
    );
  });
  const replies = await Promise.all(commits);
  const won = replies.flatMap((reply, n) => (reply.status === 'committed' ? [n] : []));
  expect(won).toHaveLength(10);
  expect(new Set(won.map((n) => n % 10)).size).toBe(10);

  const { results } = await one.results.read(run.run_id, '0');
  expect(results).toHaveLength(10);
  for (const reply of replies) {
    if (reply.status !== 'late') continue;
    expect(results.map(({ result }) => result.attempt)).toContain(reply.attempt);
  }
  expect(await one.results.groups(run.run_id)).toEqual(
    new Map([['a__b.c-1', { left: 0, usable: 10, size: 10, refilled: 0 }]]),
  );
  expect(await one.results.counts(run.run_id)).toMatchObject({
    committed: 10,
    resolved: 10,
    reward_sum: 10,
    turns_sum: 70,
    outcomes: { judged: 10, failed: 0, cancelled: 0 },
    exit_statuses: { submitted: 10 },
  });
  expect((await one.results.totals()).get('collection')).toMatchObject({ committed: 10, 'turns_in:10': 10 });
});

test('a repeated commit of the winner is committed; an expired run accepts none', async () => {
  const config = testConfig();
  await using farm = await openFarm(config, 'producer');
  const run = testRun();
  const result = testResult(run.run_id, 0);
  expect(await farm.commit(run, result)).toEqual({ status: 'gone' });
  expect(await keysOf(config)).toEqual(['farm-id']);

  await farm.runs.create(run, [testInstance()]);
  const first = await farm.commit(run, result);
  expect(await farm.commit(run, result)).toEqual(first);
  for (const other of [{ attempt: 2 }, { claim: 'other' }]) {
    expect(await farm.commit(run, { ...result, ...other, outcome: 'failed' })).toEqual({
      status: 'late',
      attempt: 1,
      outcome: 'judged',
    });
  }
  expect(await farm.results.get(result.rollout_id)).toMatchObject({
    attempt: 1,
    seconds: { queued: 0.1235 },
  });
});

test('an unreadable result is refused before a write', async () => {
  const { farm, run } = await openRun();
  const whole = testResult(run.run_id, 0);
  const odd: Record<string, unknown>[] = [
    { tokens: { prompt: 100.5, completion: 1 } },
    { turns: Number.NaN },
    { seconds: { ...whole.seconds, total: Number.POSITIVE_INFINITY } },
    { exit_status: 'of_tomorrow' },
    { attempt: undefined },
  ];
  for (const change of odd) {
    await expect(farm.commit(run, { ...whole, ...change } as typeof whole)).rejects.toMatchObject({
      code: 'result_invalid',
      message: expect.stringContaining(Object.keys(change)[0] ?? ''),
    });
  }
  expect(await farm.results.latest(run.run_id)).toBe('0');
  expect(await farm.results.counts(run.run_id)).toMatchObject({ committed: 0 });
  expect(await farm.commit(run, whole)).toMatchObject({ status: 'committed' });
});

test('failures and cancelled rollouts are counted apart and are not usable', async () => {
  const { farm, run } = await openRun();
  const none = { resolved: null, reward: null, exit_status: null } as const;
  const failure = { stage: 'policy', class: 'policy_slow', message: 'm', attempts: 2 } as const;
  await farm.commit(run, testResult(run.run_id, 0, { ...none, outcome: 'failed', failure }));
  await farm.commit(run, testResult(run.run_id, 1, { ...none, outcome: 'cancelled' }));
  await farm.commit(run, testResult(run.run_id, 2, { resolved: false, reward: 0 }));
  expect(await farm.results.groups(run.run_id)).toMatchObject(
    new Map([['a__b.c-1', { left: 1, usable: 1, size: 4, refilled: 0 }]]),
  );
  expect(await farm.results.counts(run.run_id)).toMatchObject({
    outcomes: { judged: 1, failed: 1, cancelled: 1 },
    failures: { policy_slow: 1 },
    resolved: 0,
    rewarded: 1,
    turns_sum: 7,
  });
});

test('reading continues at its cursor, waits for results, and stops at an abort', async () => {
  const { farm, run } = await openRun();
  await farm.commit(run, testResult(run.run_id, 0));
  const first = await farm.results.read(run.run_id, '0', { count: 1 });
  expect(first.results).toHaveLength(1);
  expect(await farm.results.read(run.run_id, first.last_id)).toEqual({
    ...{ results: [], unreadable: [], last_id: first.last_id },
  });

  const waiting = farm.results.read(run.run_id, first.last_id, { blockMs: 5_000 });
  await farm.commit(run, testResult(run.run_id, 1));
  expect((await waiting).results.map(({ result }) => result.rollout_index)).toEqual([1]);

  const stop = new AbortController();
  const aborted = farm.results.read(run.run_id, '0', { blockMs: 60_000, signal: stop.signal });
  const empty = farm.results.read('nothing', '0', { blockMs: 60_000, signal: stop.signal });
  setTimeout(() => stop.abort(), 50);
  expect((await aborted).results).toHaveLength(2);
  await expect(empty).rejects.toThrow(/abort/i);
});
