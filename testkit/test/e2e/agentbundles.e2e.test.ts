/** A submit warns when the live workers lack the programs of its agent. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { until } from '../../src/until.ts';
import { writeRow } from './hostrow.ts';
import { openScene } from './scene.ts';

test('a submit warns if no worker has the programs of its agent', async () => {
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({ script: conversation([{ text: 'Done.' }]) });
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'host' });
  const dataset = await writeRow(scene.folder);
  const worker = await scene.worker`--agents-dir ${join(scene.folder, 'agents')}`;
  onTestFinished(() => worker.kill('SIGKILL'));
  let printed = '';
  // A worker lists its bundles with its second heartbeat.
  await until(async () => {
    const { stderr } = await scene.swefarm`submit --dataset ${dataset} --agent codex
      --policy-url ${policy.url} --model m --deadline 1m`;
    printed = stderr;
    return printed.includes('programs of agent');
  });
  expect(printed).toMatch(/none of the 1 worker has the programs of agent codex \S+: rollouts will fail/);
  expect(printed).toContain('swefarm agents install codex');
});
