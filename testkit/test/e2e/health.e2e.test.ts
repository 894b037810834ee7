/** The registry of instances from end to end: filled by one command, heeded by the next, and known to the workers in between. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { runCommand } from '../../src/launchers/commands.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { EXAMPLE_ID } from './scripts.ts';

type Line = {
  instance_id: string;
  outcome: string;
  reward: number | null;
  facts: { gold_healthy: boolean | null; gold_time_share: number | null };
};

/** Its tests never start; what it prints tells of its surroundings. */
const SILENT = 'broken__row-1';
const EVAL_SCRIPT = `#!/bin/bash
echo "surroundings: $TZ $LANG $PYTHONHASHSEED"
`;

let folder: string;
let env: Record<string, string>;
let dataset: string;

beforeAll(async () => {
  folder = temporaryFolder('e2e');
  env = { SWEFARM_STATE_DIR: join(folder, 'state'), SWEFARM_SCRATCH_DIR: join(folder, 'scratch') };
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'docker', out: folder });
  const row = JSON.parse(await readFile(built.files.docker ?? '', 'utf8'));
  const broken = { ...row, instance_id: SILENT, eval_script: EVAL_SCRIPT };
  dataset = join(folder, 'both.jsonl');
  await writeFile(dataset, `${JSON.stringify(row)}\n${JSON.stringify(broken)}\n`);
});

async function golden(name: string, options: string[]) {
  const output = join(folder, `${name}.jsonl`);
  const args = [
    'rollout',
    '--agent',
    'golden',
    '--dataset',
    dataset,
    '--runtime',
    'docker',
    '--output',
    output,
    ...options,
  ];
  const { code, stderr } = await runCommand('swefarm', args, env);
  const lines = (await readFile(output, 'utf8')).split('\n').filter(Boolean);
  return { code, stderr, output, lines: lines.map((line) => JSON.parse(line) as Line) };
}

test('what is broken is found out once, named from then on, and left out when asked to be', async () => {
  const health = await runCommand(
    'swefarm',
    ['health', '--dataset', dataset, '--runtime', 'docker', '--n-times', '2'],
    env,
  );
  expect(health.code, health.stderr).toBe(0);
  expect(health.stderr).toContain('1 of 2 instances are healthy');
  const findings = health.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  expect(findings).toMatchObject([
    {
      instance_id: EXAMPLE_ID,
      times: 2,
      gold_resolves: true,
      noop_resolves: false,
      flaky: [],
      network: 'none',
    },
    { instance_id: SILENT, gold_resolves: false },
  ]);

  const all = await golden('all', ['--determinism']);
  expect(all.stderr).toMatch(
    /1 instance known to be broken .*--skip-broken[\s\S]*broken__row-1: gold is not resolved/,
  );
  const of = (id: string) => all.lines.find((line) => line.instance_id === id);
  expect(of(EXAMPLE_ID)).toMatchObject({ outcome: 'judged', reward: 1, facts: { gold_healthy: true } });
  expect(of(EXAMPLE_ID)?.facts.gold_time_share).toBeLessThan(0.1);
  expect(of(SILENT)).toMatchObject({ outcome: 'failed', reward: null, facts: { gold_healthy: false } });
  const shown = await runCommand('swefarm', ['show', `${all.output}#${SILENT}.0`, '--json'], env);
  expect(JSON.parse(shown.stdout).content.test_log).toContain('surroundings: UTC C.UTF-8 0');
  const report = JSON.parse(
    (await runCommand('swefarm', ['show', `${all.output}#${EXAMPLE_ID}.0`, '--json'], env)).stdout,
  ).content.report;
  expect(report).toMatchObject({
    grader: 'swebench-4.1.0',
    parser: 'pytest',
    image_digest: expect.stringMatching(/^sha256:/),
  });

  const healthy = await golden('healthy', ['--skip-broken']);
  expect(healthy.code, healthy.stderr).toBe(0);
  expect(healthy.lines.map((line) => line.instance_id)).toEqual([EXAMPLE_ID]);
});
