/** Tests that workers of a farm and of a dry run on one Redis leave each other's rollouts in the queue. */
import { loadConfig, openFarm } from '@swefarm/shared';
import { bareInstance, bareRun, startRedis } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { openNode, submitOne } from './attempts.ts';
import { emptyRuntime, noThreads } from './simulated.ts';

test.each([
  [true, false, 'it belongs to a dry run'],
  [false, true, 'it belongs to no dry run'],
])(
  'run of a dry run: %s, worker of a dry run: %s: the rollout is not claimed',
  async (run, worker, notOurs) => {
    const redis = await startRedis();
    onTestFinished(() => redis[Symbol.asyncDispose]());
    const farm = await openFarm(loadConfig('worker', { env: {}, flags: { redis_url: redis.url } }), 'worker');
    const record = bareRun({ group_size: 1, ...(run ? { dry_run: true } : {}) });
    const one = await submitOne(farm, record, bareInstance());
    const runRollout = () => Promise.reject(new Error('nothing may run'));
    const node = openNode({ farm, runtime: emptyRuntime, threads: noThreads, runRollout, dryRun: worker });
    onTestFinished(() => node.policies[Symbol.dispose]());
    expect(await one.attempt(node)).toMatchObject({ next: 'later', notOurs });
    expect(await farm.journal.read(one.id)).toEqual([]);
  },
);
