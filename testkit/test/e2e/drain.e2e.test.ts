/** Tests that a stopped worker hands back unfinished rollouts without using up attempts, and that a cancelled run frees its containers. */

import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { containersOf } from './leftovers.ts';
import { openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

const LONG = 600;

test('SIGTERM hands over running rollouts and cancel ends them; no container is left', async () => {
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({ script: conversation(running(`sleep ${LONG}`)) });
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'docker',
    SWEFARM_CONCURRENCY: '2',
    SWEFARM_DRAIN_GRACE_SECONDS: '12',
  });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'docker', out: scene.folder });
  const names = ['one', 'two'].map((name) => `${name}${process.pid}`) as [string, string];
  const one = await scene.worker`--worker-id ${names[0]}`;
  const run = await scene.submit`--dataset ${built.files.default} --agent mini --policy-url ${policy.url}
    --model scripted --group-size 2 --no-eval`;
  while (policy.stats().answered < 2) await sleep(100);
  const two = await scene.worker`--worker-id ${names[1]}`;

  expect(await one.stop(), one.stderr()).toBe(0);
  expect(await containersOf([names[0]])).toEqual([]);
  // The second worker starts the rollouts again from the first turn.
  while (policy.stats().answered < 4) await sleep(100);

  await scene.done`cancel ${run}`;
  const { lines } = await scene.collect(run);
  expect(lines).toMatchObject(
    Array(2).fill({ outcome: 'cancelled', reward: null, failure: null, attempt: 2, worker: names[1] }),
  );
  expect(await two.stop()).toBe(0);
  expect(await containersOf([names[1]])).toEqual([]);
});
