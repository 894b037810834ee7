/** Tests the registry of instances: `swefarm health` writes it, later commands read it, and workers get its findings. */
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { parseLines, readLines, writeLines } from '../../src/lines.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

/** Id of an instance whose tests never start. Its script prints environment variables. */
const SILENT = 'broken__row-1';
const EVAL_SCRIPT = `#!/bin/bash
echo "surroundings: $TZ $LANG $PYTHONHASHSEED"
`;

const scene = openScene();
const { folder } = scene;
const dataset = join(folder, 'both.jsonl');

beforeAll(async () => {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'docker', out: folder });
  const [row] = await readLines<object>(built.files.docker ?? '');
  await writeLines(dataset, [row, { ...row, instance_id: SILENT, eval_script: EVAL_SCRIPT }]);
});

async function golden(name: string, option: string) {
  const output = join(folder, `${name}.jsonl`);
  const ended =
    await scene.swefarm`rollout --agent golden --dataset ${dataset} --runtime docker --output ${output} ${option}`;
  return { ...ended, output, lines: await readLines<Line>(output) };
}

test('a broken instance is found once, then named, and excluded on request', async () => {
  const health = await scene.swefarm`health --dataset ${dataset} --runtime docker --n-times 2`;
  expect(health.code, health.stderr).toBe(0);
  expect(health.stderr).toContain('1 of 2 instances are healthy');
  const sound = { times: 2, gold_resolves: true, noop_resolves: false, flaky: [], network: 'none' };
  expect(parseLines(health.stdout)).toMatchObject([
    { instance_id: EXAMPLE_ID, ...sound },
    { instance_id: SILENT, gold_resolves: false },
  ]);

  const all = await golden('all', '--determinism');
  expect(all.stderr).toMatch(
    /1 instance known to be broken .*--skip-broken[\s\S]*broken__row-1: gold is not resolved/,
  );
  const of = (id: string) => all.lines.find((line) => line.instance_id === id);
  expect(of(EXAMPLE_ID)).toMatchObject({ outcome: 'judged', reward: 1, facts: { gold_healthy: true } });
  expect(of(EXAMPLE_ID)?.facts?.gold_time_share).toBeLessThan(0.1);
  expect(of(SILENT)).toMatchObject({ outcome: 'failed', reward: null, facts: { gold_healthy: false } });
  const { test_log } = await scene.show(`${all.output}#${SILENT}.0`);
  expect(test_log).toContain('surroundings: UTC C.UTF-8 0');
  expect((await scene.show(`${all.output}#${EXAMPLE_ID}.0`)).report).toMatchObject({
    grader: 'swebench-4.1.0',
    parser: 'pytest',
    image_digest: expect.stringMatching(/^sha256:/),
  });

  const healthy = await golden('healthy', '--skip-broken');
  expect(healthy.code, healthy.stderr).toBe(0);
  expect(healthy.lines.map((line) => line.instance_id)).toEqual([EXAMPLE_ID]);
});
