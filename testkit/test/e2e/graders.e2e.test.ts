/**
 * Tests one instance for each source of outcomes, in one run: gold gets its reward, an untouched tree gets none, and a failing program
 * of a dataset fails only its own rollout.
 */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { liveProgram, proProgram } from '@swefarm/grading';
import type { InstancePlan, OutcomeSource } from '@swefarm/shared';
import { beforeAll, describe, expect, test } from 'vitest';
import { importTree } from '../../src/images/import.ts';
import { minimalImage } from '../../src/images/minimal.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { commitTree, headOf, writeTree } from '../../src/repository.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { type Line, openScene } from './scene.ts';

const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';
const TAG = 'swefarm-test/graders:1';

/** Prints `adds: ok` or `adds: bad`, and exits with the test's code. */
const CHECK = `python3 - <<'CHECK'
import calc
good = calc.add(2, 3) == 5
print("adds:", "ok" if good else "bad")
raise SystemExit(0 if good else 3)
CHECK`;
const XML = `code=$?; mkdir -p /tmp/out; if [ $code = 0 ]; then inner=''; else inner='<failure message="wrong"/>'; fi
echo "<testsuite><testcase classname='calc' name='adds'>$inner</testcase></testsuite>" >/tmp/out/junit.xml`;
const REWARD = `if [ $? = 0 ]; then echo '{"reward": 0.75, "tests": 0.25, "style": 0.5}' >/tmp/reward.json; else echo 0 >/tmp/reward.json; fi`;

const LIVE = `
import re
def parser(log: str) -> dict[str, str]:
    return {m[1]: "pass" if m[2] == "ok" else "fail" for m in re.finditer(r"^(\\w+): (ok|bad)$", log, re.M)}
`;
const PRO = `
import json, sys
names = [line.split(": ") for line in open(sys.argv[1]).read().splitlines() if ": " in line]
tests = [{"name": name, "status": "PASSED" if word == "ok" else "FAILED"} for name, word in names]
json.dump({"tests": tests}, open(sys.argv[3], "w"))
`;

type Case = {
  script: string;
  outcomes: OutcomeSource;
  rule: InstancePlan['verdict']['rule'];
  files?: string[];
  tests: string[];
};
const CASES: Record<string, Case> = {
  'own-exit-code': { script: CHECK, outcomes: { from: 'exit_code' }, rule: 'exit_code', tests: [] },
  'printed-exit-code': {
    script: `${CHECK}\necho "CODE=$?"; exit 7`,
    outcomes: { from: 'exit_code', pattern: 'CODE=(\\d+)' },
    rule: 'exit_code',
    tests: [],
  },
  junit: {
    ...{ script: `${CHECK}\n${XML}`, rule: 'subset', tests: ['calc::adds'] },
    outcomes: { from: 'junit', file: '/tmp/out/junit.xml' },
  },
  'program-of-tools': { script: CHECK, outcomes: liveProgram(LIVE), rule: 'live', tests: ['adds'] },
  'program-of-instance': {
    script: `mkdir -p /workspace; (${CHECK}\n) >/workspace/stdout.log 2>/workspace/stderr.log`,
    files: ['/workspace/stdout.log', '/workspace/stderr.log'],
    ...{ outcomes: proProgram(PRO), rule: 'subset', tests: ['adds'] },
  },
  reward: {
    ...{ script: `${CHECK}\n${REWARD}`, rule: 'reward', tests: [] },
    outcomes: { from: 'reward', file: '/tmp/reward.json' },
  },
};
const HOSTILE: Record<string, Case> = {
  'hostile-loop': {
    ...{ script: CHECK, rule: 'live', tests: ['adds'] },
    outcomes: { ...liveProgram('def parser(log):\n    while True: pass'), timeout: 5 },
  },
  'hostile-raise': {
    ...{ script: CHECK, rule: 'live', tests: ['adds'] },
    outcomes: liveProgram('def parser(log): raise ValueError("not today")'),
  },
};

const tree = join(temporaryFolder('graders'), 'tree');
let gold: string;
let head: string;
beforeAll(async () => {
  await cp((await minimalImage()).tree, tree, { recursive: true, verbatimSymlinks: true });
  const testbed = join(tree, 'testbed');
  await writeTree(testbed, { 'calc.py': 'def add(a, b):\n    return a - b\n' });
  const git = commitTree(testbed);
  head = headOf(git);
  await writeTree(testbed, { 'calc.py': 'def add(a, b):\n    return a + b\n' });
  gold = git`diff`;
  git`checkout -q .`;
  await importTree(socketPath, tree, TAG);
});

function rowOf([id, { script, outcomes, rule, files = [], tests }]: [string, Case], image: string) {
  const apply = [{ name: 'git apply', argv: ['git', 'apply', '/tmp/patch.diff'] }];
  return {
    ...{ instance_id: `own__${id}-1`, repo: `own/${id}`, base_commit: head, image, patch: gold },
    ...{ problem_statement: 'add() subtracts', FAIL_TO_PASS: tests, PASS_TO_PASS: [] },
    environment: { workdir: '/testbed', activate: '' },
    plan: {
      ...{ grader: 'own-1', apply, files, outcomes, verdict: { rule } },
      script: `#!/bin/bash\ncd /testbed\n${script}\n`,
    },
  };
}

/** @returns the lines by the names of the cases, and the exit code of the command */
async function rollout(
  cases: Record<string, Case>,
  agent: 'golden' | 'noop',
  runtime: 'docker' | 'rootfs',
  parserImage: boolean,
): Promise<{ code: number | string | null; lines: Record<string, Line>; output: string }> {
  const image = runtime === 'docker' ? TAG : `dir:${tree}`;
  const { folder, swefarm } = openScene(parserImage ? { SWEFARM_PARSER_IMAGE: image } : {});
  const rows = Object.entries(cases).map((entry) => rowOf(entry, image));
  const dataset = await writeLines(join(folder, 'rows.jsonl'), rows);
  const output = join(folder, 'out.jsonl');
  const { code, stderr } =
    await swefarm`rollout --dataset ${dataset} --agent ${agent} --runtime ${runtime} --concurrency 3 --output ${output}`;
  const lines = await readLines<Line>(output).catch(() => []);
  const nameOf = ({ instance_id: id }: Line): string => id.replace(/^own__(.*)-1$/, '$1');
  return { code, output: stderr, lines: Object.fromEntries(lines.map((line) => [nameOf(line), line])) };
}

describe.each(['docker', 'rootfs'] as const)('on %s', (runtime) => {
  test('gold gets the reward of each grader, a score with its parts; an untouched tree gets none', async () => {
    const golden = await rollout(CASES, 'golden', runtime, true);
    expect(golden.code, golden.output).toBe(0);
    const told = Object.entries(golden.lines).map(([name, { reward, resolved }]) => [name, reward, resolved]);
    expect(told.toSorted()).toEqual(
      Object.keys(CASES)
        .map((name) => (name === 'reward' ? [name, 0.75, null] : [name, 1, true]))
        .toSorted(),
    );
    expect(golden.lines.reward).toMatchObject({
      reward_row: 'scored',
      reward_components: { tests: 0.25, style: 0.5 },
    });
    expect(golden.output).toMatch(/5 resolved \(100.0 %\), 1 scored, mean reward 0\.958/);
    const noop = await rollout(CASES, 'noop', runtime, true);
    expect(noop.code, noop.output).toBe(0);
    expect(Object.values(noop.lines).map(({ reward, resolved }) => [reward, resolved])).toEqual(
      Object.keys(CASES).map(() => [0, false]),
    );
  });

  test('programs that fail have a class of their own, and those beside them are judged', async () => {
    const cases = { ...HOSTILE, junit: CASES.junit as Case };
    const { code, lines, output } = await rollout(cases, 'golden', runtime, true);
    expect(code, output).toBe(10);
    expect(lines.junit).toMatchObject({ reward: 1 });
    const message = expect.stringContaining('did not end in 5 s');
    expect(lines['hostile-loop']).toMatchObject({
      ...{ outcome: 'failed', reward: null },
      failure: { stage: 'instance', class: 'parser_failed', message },
    });
    expect(lines['hostile-raise']?.failure?.message).toContain('ValueError: not today');
  });
});

test('without a parser_image the command warns, and only rollouts that need one fail', async () => {
  const some = { 'program-of-tools': CASES['program-of-tools'], junit: CASES.junit } as Record<string, Case>;
  const { code, lines, output } = await rollout(some, 'golden', 'rootfs', false);
  expect(code, output).toBe(10);
  expect(output).toContain(
    '1 of 2 instances need parser_image (custom: 1), and none of the 1 worker names one',
  );
  expect(lines.junit).toMatchObject({ reward: 1 });
  expect(lines['program-of-tools']?.failure).toMatchObject({
    class: 'no_parser_image',
    message: expect.stringContaining('set parser_image'),
  });
});
