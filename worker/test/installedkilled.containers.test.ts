/** The worker of an agent that comes as a program is killed or drained: another worker ends the rollout once, and nothing is left. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { answered, call, openTrial, useMachine } from './installedscene.ts';
import { workerStarter } from './killedworkers.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 400_000, hookTimeout: 240_000 });

const MACHINES = RUNTIMES.map((name) => ({ name, machine: useMachine(name) }));

test.each(MACHINES)(
  'kill -9 of the worker between answer and delivery leaves one result, on $name',
  async ({ name, machine }) => {
    const opened = await machine();
    const { farm, prefix, server, run, instance } = await openTrial(opened);
    await farm.runs.create(run, [instance], []);
    const ids = await farm.groups.rollouts(run.run_id);
    await farm.jobs.enqueue(run, ids);
    const { start: startWorker } = workerStarter(opened, name, prefix);
    const first = startWorker();
    // Fast polling, because the delivery follows the answer within milliseconds.
    while (answered(server) < 2) await sleep(2);
    first.kill('SIGKILL');
    await first.exit;
    const second = startWorker();
    const committed = async () => (await farm.results.counts(run.run_id)).committed;
    await expect.poll(committed, { timeout: 240_000, interval: 200 }).toBe(1);
    const { results } = await farm.results.read(run.run_id, '0');
    expect(results.map(({ result }) => [result.resolved, result.turns, result.attempt])).toEqual([
      [true, 3, 2],
    ]);
    expect(results[0]?.result.agent).toMatchObject({ lines: 1, requests: 3 });
    second.kill('SIGTERM');
    expect(await second.exit).toBe(0);
    const left = (await opened.runtime.listOwned()).filter(({ owner }) => owner.rollout_id === ids[0]);
    expect(left).toEqual([]);
  },
);

test.each(MACHINES)(
  'a drained worker ends the agent and hands its rollout back, on $name',
  async ({ name, machine }) => {
    const opened = await machine();
    const endless = { turns: [call('sleep 0.2')], words: ['stubborn'] };
    const { farm, prefix, server, run, instance } = await openTrial(opened, endless);
    await farm.runs.create(run, [instance], []);
    const ids = await farm.groups.rollouts(run.run_id);
    await farm.jobs.enqueue(run, ids);
    const left = async () =>
      (await opened.runtime.listOwned()).filter(({ owner }) => owner.rollout_id === ids[0]);
    const worker = workerStarter(opened, name, prefix).start();
    await expect.poll(() => answered(server), { timeout: 120_000 }).toBeGreaterThan(2);
    // The workers on rootfs have a folder of their own, which this runtime does not list.
    if (name === 'docker') expect(await left()).not.toEqual([]);
    worker.kill('SIGTERM');
    expect(await worker.exit).toBe(0);
    expect(await left()).toEqual([]);
    expect((await farm.results.counts(run.run_id)).committed).toBe(0);
    expect((await farm.journal.read(ids[0] ?? '')).map(({ end }) => end?.class)).toEqual(['drained']);
  },
);
