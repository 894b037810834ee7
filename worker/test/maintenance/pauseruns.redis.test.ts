/** Pauses of runs with unreadable answers: the rollouts that end first are no fair sample. */
import type { AttemptName } from '@swefarm/shared';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { pauseFailingRuns } from '../../src/maintenance/pauseruns.ts';
import { aWorker, claimBy, endBy, open, redisUrl, scene, startRun } from './farm.ts';

const ALIVE = { worker: 'alive', node: 'n' };

test('rollouts with unreadable answers end first, and running ones count as healthy', async () => {
  const at = await scene();
  await aWorker(at, 'alive');
  const { run, ids } = await startRun(at, { group_size: 60 });
  const claims = new Map<string, AttemptName>();
  for (const id of ids) claims.set(id, await claimBy(at, id, ALIVE));
  const miss = async (from: number, to: number): Promise<void> => {
    for (const id of ids.slice(from, to)) await endBy(at, run, id, { judged: 0, unread: 3 }, claims.get(id));
    await pauseFailingRuns.run(at.deps, open);
  };
  const reach = async (id: string, turns: number): Promise<void> => {
    const rest = { attempt: 1, worker: 'alive', node: 'n', stage: 'agent', claimed_at: 1, at: 1 };
    await at.farm.live.mark({ ...rest, rollout_id: id, turns });
  };
  const reason = async () => (await at.farm.groups.paused(run.run_id))?.reason ?? null;
  await miss(0, 29);
  expect(await reason()).toBeNull();
  // Half have ended with unreadable answers; one of the others has more turns than a rollout with unreadable answers can have.
  await reach(ids[40] ?? '', 30);
  await miss(29, 30);
  expect(await reason()).toBeNull();
  // All others may still end with unreadable answers.
  await reach(ids[40] ?? '', 3);
  await miss(30, 31);
  expect(await reason()).toMatch(/^the tool calls of 93 of 93 answers could not be read/);
});

test('an open run is paused for unread calls for a while; failures do not pause it', async () => {
  const at = await scene();
  await aWorker(at, 'alive');
  const { run, ids } = await startRun(at, { group_size: 60, open: true });
  const end = async (from: number, to: number, rollout: Parameters<typeof endBy>[3]): Promise<void> => {
    for (const id of ids.slice(from, to)) await endBy(at, run, id, rollout, await claimBy(at, id, ALIVE));
    await pauseFailingRuns.run(at.deps, open);
  };
  const paused = async () => await at.farm.groups.paused(run.run_id);
  await end(0, 20, { judged: 0, unread: 3 });
  expect(await paused()).toMatchObject({ reason: expect.stringMatching(/^the tool calls of 60 of 60/) });
  const { at: since, ends_at: until = 0 } = (await paused()) ?? { at: 0 };
  expect(until - since).toBe(300_000);
  const redis = new Redis(redisUrl());
  onTestFinished(() => redis.disconnect());
  const [key = ''] = await redis.keys(`*${run.run_id}*paused`);
  await redis.set(key, JSON.stringify({ ...(await paused()), ends_at: since }), 'KEEPTTL');
  await end(20, 20, { judged: 0 });
  expect(await paused()).toMatchObject({ reason: null, since: { answers: 60 } });
  // Earlier counts do not pause it again; later ones do.
  await end(20, 26, { judged: 0, unread: 3 });
  expect(await paused()).toMatchObject({ reason: null });
  await end(26, 27, { judged: 0, unread: 3 });
  expect(await paused()).toMatchObject({ reason: expect.stringMatching(/^the tool calls of 21 of 21/) });
});

test('a pause of an open run by hand lasts until it is resumed by hand', async () => {
  const at = await scene();
  await aWorker(at, 'alive');
  const { run } = await startRun(at, { open: true });
  await at.farm.groups.pause(run.run_id, 'paused by hand');
  await pauseFailingRuns.run(at.deps, open);
  expect(await at.farm.groups.paused(run.run_id)).toMatchObject({ reason: 'paused by hand' });
});
