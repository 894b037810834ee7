/** A worker told to stop hands back what it cannot finish, at once and at no cost; a cancelled run frees its containers. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { runCommand, startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { containersOf } from './leftovers.ts';
import { EXAMPLE_ID } from './scripts.ts';

const LONG = 600;

test('SIGTERM hands running rollouts to another worker, and cancel ends them, with no container left', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-drain-'));
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [[{ command: `sleep ${LONG}` }, { submit: true }]] }] },
  });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'docker', out: folder });
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: 'docker',
    SWEFARM_CONCURRENCY: '2',
    SWEFARM_DRAIN_GRACE_SECONDS: '12',
  };
  const names = ['one', 'two'].map((name) => `${name}${process.pid}`) as [string, string];
  const one = startCommand('swefarm-worker', ['run', '--worker-id', names[0]], env);
  await one.until(/"msg":"ready"/);
  const flags = [
    '--dataset',
    built.files.default,
    '--agent',
    'mini',
    '--policy-url',
    policy.url,
    '--model',
    'scripted',
  ];
  const submitted = await runCommand('swefarm', ['submit', ...flags, '--group-size', '2', '--no-eval'], env);
  const { run_id } = JSON.parse(submitted.stdout);
  while (policy.stats().answered < 2) await sleep(100);
  const two = startCommand('swefarm-worker', ['run', '--worker-id', names[1]], env);
  await two.until(/"msg":"ready"/);

  one.kill('SIGTERM');
  expect(await one.exit, one.stderr()).toBe(0);
  expect(await containersOf([names[0]])).toEqual([]);
  // Asked again from the first turn, by the second worker.
  while (policy.stats().answered < 4) await sleep(100);

  const cancelled = await runCommand('swefarm', ['cancel', run_id], env);
  expect(cancelled.code, cancelled.stderr).toBe(0);
  const output = join(folder, 'out.jsonl');
  await runCommand('swefarm', ['collect', run_id, '--output', output], env);
  const lines = (await readFile(output, 'utf8')).split('\n').filter(Boolean);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(
    Array(2).fill({ outcome: 'cancelled', reward: null, failure: null, attempt: 2, worker: names[1] }),
  );
  two.kill('SIGTERM');
  expect(await two.exit).toBe(0);
  expect(await containersOf([names[1]])).toEqual([]);
  await rm(folder, { recursive: true, force: true });
});
