/** Tests that a worker with 64 running rollouts loses no lock while it grades logs of 50 MB and logs that slow down parsers. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { printingScript } from '../../src/results/bare.ts';
import { openScene } from './scene.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const LIVE = 64;
const HOSTILE = {
  large: "w(('x' * 99 + '\\n') * 500000)",
  stalling: "w('_' * 3000000)",
} as const;

/** Writes rows whose tests run a line of Python, which prints the log, and then print the one counted result. */
async function hostileRows(from: string, to: string): Promise<void> {
  const [row] = await readLines<object>(from);
  const rows = Object.entries(HOSTILE).map(([name, prints]) => ({
    ...row,
    instance_id: `own__${name}-1`,
    FAIL_TO_PASS: ['t.py::test_a'],
    PASS_TO_PASS: [],
    log_parser: 'pytest',
    eval_script: printingScript(prints),
  }));
  await writeLines(to, rows);
}

test('64 rollouts retain their locks while hostile logs are graded', async () => {
  await using redis = await startRedis();
  const scene = openScene({ SWEFARM_REDIS_URL: redis.url });
  const { folder } = scene;
  await using policy = await startScriptedPolicy({
    script: { ...twentyTurns(), delay: { fixed_ms: 2500 } },
  });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const hostile = join(folder, 'hostile.jsonl');
  await hostileRows(built.files.default, hostile);
  const worker = await scene.worker`--runtime rootfs --concurrency ${LIVE + 2}`;
  const run = await scene.submit`--dataset ${built.files.default} --agent mini --group-size ${LIVE}
    --policy-url ${policy.url} --model scripted`;
  // The evaluations use the two remaining slots.
  const graded = join(folder, 'graded.jsonl');
  await scene.done`eval --dataset ${hostile} --predictions gold --run-id hostile --no-local-worker
    --logs-dir ${folder}/logs --report-dir ${folder} --output ${graded}`;
  const status = await scene.swefarm`status ${run} --json`;
  expect(JSON.stringify(await readLines(graded))).toContain('"resolved":true');
  const collected = await scene.collect(run);
  expect(collected.code, collected.stderr).toBe(0);

  expect(collected.lines.length, status.stdout).toBe(LIVE);
  for (const line of collected.lines)
    expect(line).toMatchObject({ outcome: 'judged', attempt: 1, turns: 20 });
  expect(worker.stdout() + worker.stderr()).not.toMatch(/lock lost/);
  expect(await worker.stop()).toBe(0);
});
