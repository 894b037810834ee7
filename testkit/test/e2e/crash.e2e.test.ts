/** A worker, a producer and Redis as separate processes; the worker is killed in the middle: nothing lost, doubled or left. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { runCommand, type Started, startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { containersOf, endlessKeys, processesOf, scratchOf } from './leftovers.ts';
import { EXAMPLE_ID, twentyTurns, withoutInstall } from './scripts.ts';

const ROLLOUTS = 64;
type Line = {
  rollout_id: string;
  rollout_index: number;
  outcome: string;
  resolved: boolean;
  reward: number;
  attempt: number;
  turns: number;
  worker: string;
};

async function lines(path: string): Promise<Line[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

async function startWorker(name: string, runtime: string, env: Record<string, string>): Promise<Started> {
  const worker = startCommand(
    'swefarm-worker',
    ['run', '--runtime', runtime, '--concurrency', '16', '--worker-id', name],
    env,
  );
  await worker.until(/"msg":"ready"/);
  return worker;
}

test.each(['docker', 'rootfs'] as const)(
  '64 rollouts of 20 turns on %s survive kill -9 of their worker',
  async (runtime) => {
    const folder = await mkdtemp(join(tmpdir(), 'swefarm-e2e-'));
    await using redis = await startRedis();
    await using policy = await startScriptedPolicy({ script: twentyTurns() });
    const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: folder });
    const env = {
      SWEFARM_REDIS_URL: redis.url,
      SWEFARM_STATE_DIR: join(folder, 'state'),
      SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    };
    const output = join(folder, 'out.jsonl');
    const names = ['first', 'second'].map((name) => `${name}${process.pid}`) as [string, string];

    const first = await startWorker(names[0], runtime, env);
    const submitted = await runCommand(
      'swefarm',
      [
        'submit',
        '--dataset',
        await withoutInstall(built.files.default),
        '--agent',
        'mini',
        '--group-size',
        String(ROLLOUTS),
        '--policy-url',
        policy.url,
        '--model',
        'scripted',
        '--require-tokens',
      ],
      env,
    );
    expect(submitted.stderr).not.toMatch(/error/i);
    const run: string = JSON.parse(submitted.stdout).run_id;
    const collect = startCommand('swefarm', ['collect', run, '--output', output], env);
    while ((await lines(output)).length < 8) await sleep(200);
    first.kill('SIGKILL');
    await first.exit;
    const second = await startWorker(names[1], runtime, env);

    expect(await collect.exit).toBe(0);
    const results = await lines(output);
    expect(new Set(results.map((line) => line.rollout_id)).size).toBe(ROLLOUTS);
    expect(results.length).toBe(ROLLOUTS);
    for (const line of results) {
      const resolves = line.rollout_index % 2 === 0;
      expect(line).toMatchObject({
        outcome: 'judged',
        resolved: resolves,
        reward: resolves ? 1 : 0,
        turns: 20,
      });
    }
    // Those that the kill interrupted were attempted again, by the second worker.
    expect(results.some((line) => line.attempt > 1 && line.worker === names[1])).toBe(true);

    second.kill('SIGTERM');
    expect(await second.exit).toBe(0);
    expect(await containersOf(names)).toEqual([]);
    expect(await scratchOf(env.SWEFARM_SCRATCH_DIR)).toEqual([]);
    expect(await processesOf(env.SWEFARM_SCRATCH_DIR)).toEqual([]);
    expect(await endlessKeys(redis.url)).toEqual([]);
    await rm(folder, { recursive: true, force: true });
  },
);
