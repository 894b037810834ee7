/** The worker of an agent that comes as a program is killed after the policy has answered: another worker ends the rollout once. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '@swefarm/shared';
import { startCommand } from '@swefarm/testkit';
import { expect, onTestFinished, test, vi } from 'vitest';
import { answered, openTrial, useMachine } from './installedscene.ts';
import { redisUrl } from './maintenance/farm.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 400_000, hookTimeout: 240_000 });

test.each(RUNTIMES.map((name) => ({ name, machine: useMachine(name) })))(
  'kill -9 of the worker between answer and delivery leaves one result, on $name',
  async ({ name, machine }) => {
    const opened = await machine();
    const { farm, prefix, server, run, instance } = await openTrial(opened);
    await farm.runs.create(run, [instance], []);
    const ids = await farm.groups.rollouts(run.run_id);
    await farm.jobs.enqueue(run, ids);
    const scratch = join(opened.folder, `scratch-${newId()}`);
    const startWorker = () => {
      const worker = startCommand('swefarm-worker', ['run', '--runtime', name, '--concurrency', '1'], {
        ...{ SWEFARM_REDIS_URL: redisUrl(), SWEFARM_REDIS_PREFIX: prefix, SWEFARM_SCRATCH_DIR: scratch },
        ...{ SWEFARM_STATE_DIR: join(opened.folder, 'state'), SWEFARM_REDIS_DURABILITY: 'best_effort' },
        ...{ SWEFARM_AGENTS_DIR: join(opened.folder, 'agents') },
      });
      onTestFinished(() => worker.kill('SIGKILL'));
      return worker;
    };
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
