/** Tests that after SIGKILL of a worker in the middle of a run no result is lost or duplicated, and nothing is left behind. */

import { join } from 'node:path';
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { readLines } from '../../src/lines.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { containersOf } from './leftovers.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID, twentyTurns, withoutInstall } from './scripts.ts';

const ROLLOUTS = 64;
const lines = (path: string): Promise<Line[]> => readLines<Line>(path).catch(() => []);

test.each(['docker', 'rootfs'] as const)(
  '64 rollouts of 20 turns on %s survive kill -9 of their worker',
  async (runtime) => {
    await using redis = await startRedis();
    const scene = openScene({ SWEFARM_REDIS_URL: redis.url });
    await using policy = await startScriptedPolicy({ script: twentyTurns() });
    const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: scene.folder });
    const output = join(scene.folder, 'out.jsonl');
    const names = ['first', 'second'].map((name) => `${name}${process.pid}`) as [string, string];
    const startWorker = (name: string) =>
      scene.worker`--runtime ${runtime} --concurrency 16 --worker-id ${name}`;

    const first = await startWorker(names[0]);
    const submitted = await scene.swefarm`submit --dataset ${await withoutInstall(built.files.default)}
      --agent mini --group-size ${ROLLOUTS} --policy-url ${policy.url} --model scripted --require-tokens`;
    expect(submitted.stderr).not.toMatch(/error/i);
    const run: string = JSON.parse(submitted.stdout).run_id;
    const collect = scene.start`collect ${run} --output ${output}`;
    while ((await lines(output)).length < 8) await sleep(200);
    first.kill('SIGKILL');
    await first.exit;
    const second = await startWorker(names[1]);

    expect(await collect.exit).toBe(0);
    const results = await lines(output);
    expect(new Set(results.map((line) => line.rollout_id)).size).toBe(ROLLOUTS);
    expect(results.length).toBe(ROLLOUTS);
    for (const line of results) {
      const resolved = line.rollout_index % 2 === 0;
      expect(line).toMatchObject({ outcome: 'judged', resolved, reward: resolved ? 1 : 0, turns: 20 });
    }
    // The second worker ran the interrupted rollouts again.
    expect(results.some((line) => line.attempt > 1 && line.worker === names[1])).toBe(true);

    expect(await second.stop()).toBe(0);
    expect(await containersOf(names)).toEqual([]);
    await scene.expectNothingLeft();
  },
);
