/** Each duty on a real Redis: its effect, its repetition, and its interruption. */
import { parseRolloutId, type RunRecord, resumeRun } from '@swefarm/shared';
import { rawRedis } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { cancelAbandonedRuns, cancelExpiredRuns, cancelStaleRuns } from '../../src/maintenance/cancelruns.ts';
import { commitCancelled } from '../../src/maintenance/commitcancelled.ts';
import { giveUpRollouts } from '../../src/maintenance/deadworkers.ts';
import type { Duty } from '../../src/maintenance/duty.ts';
import { pauseFailingRuns } from '../../src/maintenance/pauseruns.ts';
import { ownerlessOf } from '../../src/maintenance/removeartifacts.ts';
import { queueRefills, requeueLostJobs } from '../../src/maintenance/requeue.ts';
import { aWorker, BY, claimBy, endBy, GROUP, open, type Scene, scene, startRun } from './farm.ts';

/** Runs twice: the second round must find nothing to do. */
async function twice(duty: Duty, { deps }: Scene): Promise<void> {
  await duty.run(deps, open);
  await duty.run(deps, open);
}

const rowsOf = async ({ farm }: Scene, runId: string): Promise<Record<string, string>> => {
  const { results } = await farm.results.read(runId, '0');
  return Object.fromEntries(
    results.map(({ result }) => [
      parseRolloutId(result.rollout_id).index,
      `${result.outcome} ${result.reward_row}`,
    ]),
  );
};

test('a deadline cancels rollouts without a result, with the reason, and keeps results', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, { deadline_at: Date.now() - 1 });
  const later = await startRun(at, { deadline_at: Date.now() + 3_600_000 });
  await endBy(at, run, ids[0] ?? '', { judged: 1 });
  await twice(cancelExpiredRuns, at);
  const epoch = await at.farm.cancel.epoch();
  await twice(commitCancelled(), at);
  expect(await rowsOf(at, run.run_id)).toEqual({
    0: 'judged judged',
    1: 'cancelled deadline',
    2: 'cancelled deadline',
    3: 'cancelled deadline',
  });
  await twice(cancelExpiredRuns, at);
  expect(await at.farm.cancel.epoch()).toBe(epoch);
  expect(await at.farm.groups.open(later.run.run_id)).toHaveLength(4);
  expect(await at.farm.jobs.missing(ids)).toEqual(ids.slice(1));
});

test('a run is cancelled when its lease expires, and other runs are not', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, {});
  const renewed = await startRun(at, {});
  const without = await startRun(at, {});
  expect(await at.farm.runLeases.renew([run.run_id, 'gone'], 1)).toEqual([run.run_id]);
  await at.farm.runLeases.renew([renewed.run.run_id], 1);
  await at.farm.runLeases.renew([renewed.run.run_id], 3_600_000);
  await endBy(at, run, ids[0] ?? '', { judged: 1 });
  await expect.poll(() => at.farm.runLeases.overdue()).toEqual([run.run_id]);
  await twice(cancelAbandonedRuns, at);
  await twice(commitCancelled(), at);
  expect(await rowsOf(at, run.run_id)).toEqual({
    0: 'judged judged',
    1: 'cancelled lease',
    2: 'cancelled lease',
    3: 'cancelled lease',
  });
  for (const { run: other } of [renewed, without])
    expect(await at.farm.groups.open(other.run_id)).toHaveLength(4);
  expect(await at.farm.runLeases.overdue()).toEqual([]);
});

test('neither deadline, min_group, oversample nor refills end an open run or its groups', async () => {
  const at = await scene();
  const ending = { deadline_at: Date.now() - 1, min_group: 1, oversample: 1, refills: 5 };
  const { run, ids } = await startRun(at, { open: true, ...ending });
  const [a = '', b = '', ...others] = ids;
  await endBy(at, run, a, { judged: 1 });
  await endBy(at, run, b, { failed: 'engine_unreachable' });
  await twice(cancelExpiredRuns, at);
  expect(await at.farm.cancel.isCancelled(ids)).toEqual(new Map());
  expect(await at.farm.groups.open(run.run_id)).toEqual(others);
  expect(await at.farm.journal.claim(others[0] ?? '', BY)).toMatchObject({ cancelled: null });
});

test('enough usable results end a group at once; a worker commits a running sibling itself', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, { min_group: 2 });
  await aWorker(at, 'w1');
  const [a = '', b = '', claimed = '', waiting = ''] = ids;
  await at.farm.journal.claim(claimed, BY);
  await endBy(at, run, a, { judged: 0 });
  expect(await at.farm.cancel.isCancelled(ids)).toEqual(new Map());
  await endBy(at, run, b, { judged: 1 });
  expect([...(await at.farm.cancel.isCancelled([claimed, waiting])).values()]).toEqual([
    'early_stop',
    'early_stop',
  ]);
  await twice(commitCancelled(), at);
  expect(await rowsOf(at, run.run_id)).toMatchObject({ 3: 'cancelled early_stop' });
  expect(await at.farm.groups.open(run.run_id)).toEqual([claimed]);
  // A worker that does not commit in time is not waited for.
  await commitCancelled(0).run(at.deps, open);
  expect(await rowsOf(at, run.run_id)).toMatchObject({ 2: 'cancelled early_stop' });
});

test('a rollout lost to infrastructure is refilled in the same step, up to the limit', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, { refills: 2, group_size: 2 });
  const [a = '', b = ''] = ids;
  await endBy(at, run, a, { failed: 'sandbox_lost' });
  expect(await at.farm.groups.open(run.run_id)).toEqual([b, `${run.run_id}.${GROUP}.2`]);
  // Killed between opening and queueing: the next worker queues it.
  expect(await at.farm.jobs.missing([`${run.run_id}.${GROUP}.2`])).toHaveLength(1);
  await twice(queueRefills, at);
  expect(await at.farm.jobs.missing([`${run.run_id}.${GROUP}.2`])).toEqual([]);
  await endBy(at, run, `${run.run_id}.${GROUP}.2`, { failed: 'policy_silent' });
  await endBy(at, run, b, { failed: 'policy_silent' });
  expect(await at.farm.groups.rollouts(run.run_id)).toHaveLength(4);
  await endBy(at, run, `${run.run_id}.${GROUP}.3`, { failed: 'tests_cannot_start' });
  expect(await at.farm.groups.open(run.run_id)).toEqual([]);
  // A failure that no other attempt can avoid is not refilled.
  const other = await startRun(at, { refills: 2, group_size: 2 });
  await endBy(at, other.run, other.ids[0] ?? '', { failed: 'tests_cannot_start' });
  expect(await at.farm.groups.open(other.run.run_id)).toEqual(other.ids.slice(1));
});

test('lost and failed jobs are made again; finished runs leave the list', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, {}, false);
  expect(await at.farm.jobs.missing(ids)).toEqual(ids);
  await twice(requeueLostJobs, at);
  expect(await at.farm.jobs.missing(ids)).toEqual([]);
  await at.farm.queue().remove(ids[2] ?? '');
  await endBy(at, run, ids[1] ?? '', { judged: 1 });
  await twice(requeueLostJobs, at);
  expect(await at.farm.jobs.missing([ids[2] ?? ''])).toEqual([]);
  for (const id of ids) if (id !== ids[1]) await endBy(at, run, id, { judged: 0 });
  await twice(requeueLostJobs, at);
  expect((await at.farm.groups.unfinishedRuns()).runs).toEqual([]);
  expect(await at.farm.groups.add(run.run_id, GROUP, 1)).toEqual([`${run.run_id}.${GROUP}.4`]);
  expect((await at.farm.groups.unfinishedRuns()).runs).toHaveLength(1);
});

test('a rollout with an unreadable policy does not block other rollouts', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, {}, false);
  const [bad = ''] = ids;
  const redis = rawRedis(at.farm);
  await redis('HSET', `{${at.prefix}}:run:${run.run_id}:policies`, bad, '{"urls":["http://u:p@h/v1"]}');
  await twice(requeueLostJobs, at);
  expect(await at.farm.jobs.missing(ids)).toEqual([bad]);
  expect(at.logTexts.filter((text) => text.includes(bad))).toEqual([
    expect.stringMatching(/policy of rollout .* is unreadable: urls\.0: expected a URL without user/),
  ]);
});

test('rollouts of an output are not queued again', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, {}, false);
  await at.farm.groups.markDoneElsewhere(ids.slice(0, 3));
  await at.farm.groups.markDoneElsewhere(ids.slice(0, 3));
  expect(await at.farm.groups.open(run.run_id)).toEqual(ids.slice(3));
  await at.farm.groups.reopen(ids.slice(2));
  expect(await at.farm.groups.open(run.run_id)).toEqual(ids.slice(2));
  expect((await at.farm.results.groups(run.run_id)).get(GROUP)).toMatchObject({ left: 2, size: 4 });
});

test('three dead workers park a rollout; a living one does not', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at);
  const [poison = '', unlucky = ''] = ids;
  for (const worker of ['d1', 'd2', 'd3']) await at.farm.journal.claim(poison, { worker, node: 'n' });
  for (const worker of ['d1', 'd2']) await at.farm.journal.claim(unlucky, { worker, node: 'n' });
  await aWorker(at, 'alive');
  await at.farm.journal.claim(unlucky, { worker: 'alive', node: 'n' });
  await twice(giveUpRollouts, at);
  expect(await rowsOf(at, run.run_id)).toEqual({ 0: 'failed failed' });
  expect(await at.farm.results.get(poison)).toMatchObject({
    reward: null,
    attempt: 3,
    failure: { class: 'lost', attempts: 3 },
  });
});

test('a run that mostly fails by infrastructure is paused; a resume restarts its counts', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, { group_size: 60 });
  const spoil = async (from: number, to: number): Promise<void> => {
    for (const id of ids.slice(from, to)) await endBy(at, run, id, { failed: 'engine_unreachable' });
  };
  await spoil(0, 19);
  await twice(pauseFailingRuns, at);
  expect(await at.farm.groups.paused(run.run_id)).toBeNull();
  await spoil(19, 20);
  await twice(pauseFailingRuns, at);
  expect((await at.farm.groups.paused(run.run_id))?.reason).toBe(
    '20 of 20 rollouts failed by infrastructure (engine_unreachable 20)',
  );
  expect(await at.farm.journal.claim(ids[30] ?? '', BY)).toEqual({ status: 'paused' });
  await resumeRun(at.farm, run.run_id);
  await twice(pauseFailingRuns, at);
  expect(await at.farm.journal.claim(ids[30] ?? '', BY)).toMatchObject({ status: 'claimed' });
  // Broken instances are no reason, whatever their number.
  for (const id of ids.slice(31, 55)) await endBy(at, run, id, { failed: 'image_not_found' });
  await twice(pauseFailingRuns, at);
  expect((await at.farm.groups.paused(run.run_id))?.reason).toBeNull();
});

test('a run with unreadable tool calls is paused with their markers, and restarts its counts', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, { group_size: 60 });
  const play = async (from: number, to: number, unread?: number): Promise<void> => {
    for (const id of ids.slice(from, to))
      await endBy(at, run, id, { judged: 0, ...(unread === undefined ? {} : { unread }) });
    await twice(pauseFailingRuns, at);
  };
  const reason = async () => (await at.farm.groups.paused(run.run_id))?.reason ?? null;
  // Each rollout has three answers: 18 unread ones of 18 are too little evidence, 21 of 21 are not.
  await play(0, 6, 3);
  expect(await reason()).toBeNull();
  await play(6, 7, 3);
  expect(await reason()).toMatch(
    /^the tool calls of 21 of 21 answers could not be read \(<tool_call> 21\): .*--tool-parser/,
  );
  await resumeRun(at.farm, run.run_id);
  // A model that misses the form in two of three answers may learn it.
  await play(7, 27, 2);
  expect(await reason()).toBeNull();
  await play(27, 60, 3);
  expect(await reason()).toBeNull();
});

test('a run with infra_pause_share null is not paused for unread answers', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at, { group_size: 8, infra_pause_share: null });
  for (const id of ids) await endBy(at, run, id, { judged: 0, unread: 3 });
  await twice(pauseFailingRuns, at);
  expect(await at.farm.groups.paused(run.run_id)).toBeNull();
});

test('a run too far behind its policy is cancelled as stale', async () => {
  const at = await scene();
  const policy = { urls: ['http://127.0.0.1:1/v1'], model: 'm', version: 'v1', name: 'p' };
  const { run, ids } = await startRun(at, { max_staleness: 1, policy: policy as RunRecord['policy'] });
  for (const version of ['v1', 'v2']) await at.farm.policies.set('p', { version });
  await twice(cancelStaleRuns, at);
  expect((await at.farm.cancel.isCancelled(ids)).size).toBe(0);
  await at.farm.policies.set('p', { version: 'v3' });
  await twice(cancelStaleRuns, at);
  await twice(commitCancelled(), at);
  expect(Object.values(await rowsOf(at, run.run_id))).toEqual(Array(4).fill('cancelled stale'));
});

test('open runs and runs that do not follow the policy are not cancelled as stale', async () => {
  const at = await scene();
  const policy = { urls: ['http://127.0.0.1:1/v1'], model: 'm', version: 'v1' } as RunRecord['policy'];
  const calls = await startRun(at, { max_staleness: 0, open: true, policy });
  const beside = await startRun(at, {
    max_staleness: 0,
    policy: { ...policy, urls: ['http://127.0.0.1:2/v1'] } as RunRecord['policy'],
  });
  const own = await startRun(at, { max_staleness: 0, policy });
  const endpoints = ['http://127.0.0.1:1/v1/'];
  for (const version of ['v1', 'v2', 'v3']) await at.farm.policies.set('default', { version, endpoints });
  await twice(cancelStaleRuns, at);
  const cancelled = async ({ ids }: typeof own) => (await at.farm.cancel.isCancelled(ids)).size;
  expect([await cancelled(calls), await cancelled(beside), await cancelled(own)]).toEqual([0, 0, 4]);
});

test('artifacts of late attempts go; those of winners, running attempts and resumable work stay', async () => {
  const at = await scene();
  const { run, ids } = await startRun(at);
  const [won = '', running = '', resumable = '', failed = ''] = ids;
  const blob = Buffer.from('x');
  const overtaken: string[] = [];
  for (const id of [won, failed]) {
    const over = await claimBy(at, id);
    await at.farm.journal.end(id, over.claim, { stage: 'sandbox', class: 'sandbox_lost', cause: null });
    overtaken.push(await at.farm.artifacts.put(id, over, blob));
  }
  const winner = await claimBy(at, won);
  await endBy(at, run, won, { judged: 1 }, winner);
  await at.farm.artifacts.put(won, winner, blob);
  // Redis lost this claim, and gave its number to the winner.
  const lost = await at.farm.artifacts.put(won, { attempt: 2, claim: 'lost' }, blob);
  await at.farm.artifacts.put(running, await claimBy(at, running), blob);
  const worked = await claimBy(at, resumable);
  const locator = await at.farm.artifacts.put(resumable, worked, blob);
  const lostEvaluation = { stage: 'evaluation', class: 'evaluation_lost', cause: null } as const;
  await at.farm.journal.end(resumable, worked.claim, { ...lostEvaluation, kept: locator });
  const now = Date.now();
  const stored = (await Array.fromAsync(at.farm.artifacts.runParts(run.run_id))).flat();
  expect((await ownerlessOf(at.farm, run.run_id, stored, now + 3_600_000)).sort()).toEqual(
    [...overtaken, lost].sort(),
  );
  // Of recent artifacts, only one without a known claim beside a winner is removed.
  expect(await ownerlessOf(at.farm, run.run_id, stored, now)).toEqual([lost]);
});

test('a job that a wrong clock delayed for a day is queued; an ordinary delay stays', async () => {
  const at = await scene();
  const { ids } = await startRun(at, { group_size: 2 });
  const redis = at.farm.bullConnection() as unknown as { call(...words: unknown[]): Promise<unknown> };
  const now = await at.farm.clock.ask();
  const [far = '', near = ''] = ids;
  const prefix = at.farm.queue().toKey('');
  for (const [id, ms] of [
    [far, 86_400_000],
    [near, 60_000],
  ] as const) {
    await redis.call('ZREM', `${prefix}prioritized`, id);
    await redis.call('ZADD', `${prefix}delayed`, (now + ms) * 4096, id);
  }
  await twice(requeueLostJobs, at);
  const state = async (id: string) => (await at.farm.queue().getJob(id))?.getState();
  expect([await state(far), await state(near)]).toEqual(['prioritized', 'delayed']);
});

test('runs of a class take turns: a later run starts beside the first one', async () => {
  const at = await scene();
  const first = await startRun(at, { group_size: 2 });
  for (const job of await at.farm.queue().getJobs(['prioritized'])) await job.remove();
  // The first has reached its hundredth rollout.
  const late = await startRun(at, { group_size: 2 }, false);
  await at.farm.queue().add('rollout', {} as never, { jobId: 'x.y.0', priority: 2 * 2 ** 19 + 1 + 100 });
  const second = await startRun(at, { group_size: 2 });
  const jobs = await at.farm.queue().getJobs(['prioritized']);
  expect(jobs.map((job) => job.opts.priority)).toEqual(Array(3).fill(2 * 2 ** 19 + 101));
  expect([first.ids.length, late.ids.length, second.ids.length]).toEqual([2, 2, 2]);
});
