/**
 * Patches that break the build, the import, or loop for ever: reward 0 by a control evaluation, in groups whose instance nobody has
 * checked. Rollouts of a real worker on the `host` runtime, with the compilers of this machine.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Instance, newId, type Result } from '@swefarm/shared';
import { bareInstance, bareRun } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startThreads, type Threads } from '../src/threads/pool.ts';
import { startHostWorker } from './hostworker.ts';
import { openScene } from './maintenance/farm.ts';

vi.setConfig({ testTimeout: 300_000 });

let folder: string;
let threads: Threads;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swefarm-broken-'));
  threads = startThreads(1);
});
afterAll(async () => {
  await threads[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

type Language = {
  program: string;
  /** The tree, and what each patch writes in place of its files. */
  files: Record<string, string>;
  gold: Record<string, string>;
  broken: Record<string, string>;
  parser: string;
  test: string;
  /** Bash lines that bring the hidden test and run it. */
  script: string[];
};

const PYTHON: Language = {
  program: 'python3',
  files: { 'calc.py': 'def add(a, b):\n    return a - b\n' },
  gold: { 'calc.py': 'def add(a, b):\n    return a + b\n' },
  broken: { 'calc.py': 'def add(a, b:\n    return a + b\n' },
  parser: 'parse_log_pytest',
  test: 't.py::test_add',
  script: [
    `echo "from calc import add; print(('PASSED' if add(1, 2) == 3 else 'FAILED') + ' t.py::test_add')" > t.py`,
    'python3 t.py',
  ],
};
/** The hidden test of the others calls what only the fix adds: it does not compile on the untouched tree either. */
const LANGUAGES: Record<string, Language> = {
  Python: PYTHON,
  Go: {
    program: 'go',
    files: { 'go.mod': 'module calc\n\ngo 1.19\n', 'calc.go': 'package calc\n' },
    gold: { 'calc.go': 'package calc\n\nfunc Add(a, b int) int { return a + b }\n' },
    broken: { 'calc.go': 'package calc\n\nfunc Add(a, b int) int { return a + c }\n' },
    parser: 'gotest',
    test: 'TestAdd',
    script: [
      `printf 'package calc\\n\\nimport "testing"\\n\\nfunc TestAdd(t *testing.T) {\\n\\tif Add(1, 2) != 3 {\\n\\t\\tt.Fatal()\\n\\t}\\n}\\n' > calc_test.go`,
      'GOTOOLCHAIN=local GOFLAGS=-mod=mod go test -v ./...',
    ],
  },
  Rust: {
    program: 'cargo',
    files: {
      'Cargo.toml': '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
      'src/lib.rs': '// Nothing yet.\n',
    },
    gold: { 'src/lib.rs': 'pub fn add(a: i32, b: i32) -> i32 { a + b }\n' },
    broken: { 'src/lib.rs': 'pub fn add(a: i32, b: i32) -> i32 { a + c }\n' },
    parser: 'cargo',
    test: 'adds',
    script: [
      `export PATH='${process.env.PATH}' RUSTUP_HOME='${process.env.RUSTUP_HOME ?? join(homedir(), '.rustup')}'`,
      'mkdir -p tests',
      `echo '#[test] fn adds() { assert_eq!(calc::add(1, 2), 3); }' > tests/t.rs`,
      'cargo test --offline',
    ],
  },
  Java: {
    program: 'javac',
    files: { 'Calc.java': 'class Calc {}\n' },
    gold: { 'Calc.java': 'class Calc { static int add(int a, int b) { return a + b; } }\n' },
    broken: { 'Calc.java': 'class Calc { static int add(int a, int b) { return a + c; } }\n' },
    parser: 'parse_log_pytest',
    test: 'T::adds',
    script: [
      `echo 'class T { public static void main(String[] a) { System.out.println((Calc.add(1, 2) == 3 ? "PASSED" : "FAILED") + " T::adds"); } }' > T.java`,
      'javac Calc.java T.java && java -cp . T',
    ],
  },
};

const MARKED = (lines: readonly string[]): string =>
  [
    ...['#!/bin/bash', 'set -x', 'cd /testbed', ": '>>>>> Start Test Output'"],
    ...[...lines, ": '>>>>> End Test Output'", ''],
  ].join('\n');

const git = (tree: string, ...line: string[]): string =>
  execFileSync('git', ['-C', tree, '-c', 'user.name=t', '-c', 'user.email=t@t', ...line], {
    encoding: 'utf8',
  });

async function write(tree: string, files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(tree, path)), { recursive: true });
    await writeFile(join(tree, path), text);
  }
}

/** A tree of the language; `patch` makes the difference of files to it. */
async function place(language: Language) {
  const tree = join(folder, newId());
  await write(tree, language.files);
  git(tree, 'init', '-q');
  git(tree, 'add', '.');
  git(tree, 'commit', '-qm', 'base');
  const patch = async (files: Record<string, string>): Promise<string> => {
    await write(tree, files);
    const diff = git(tree, 'diff');
    git(tree, 'checkout', '-q', '.');
    return diff;
  };
  const row = bareInstance({
    ...{ image: `dir:${tree}`, base_commit: 'HEAD', patch: await patch(language.gold) },
    ...{ log_parser: language.parser, FAIL_TO_PASS: [language.test] },
    eval_script: MARKED(language.script),
  });
  return { row, patch };
}

/** Results of one rollout for each patch, in their order. */
async function run(row: Instance, patches: readonly string[], timeout = 120): Promise<Result[]> {
  const prefix = `{b-${newId()}}`;
  const { farm } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const record = bareRun({
    group_size: patches.length,
    agent: { ...bareRun().agent, type: 'patch' },
    evaluation: { ...bareRun().evaluation, timeout },
    sandbox: { ...bareRun().sandbox, activate: ':' },
    reward: { ...bareRun().reward, host: true },
  });
  const refs = patches.map((patch, at) => [`${row.instance_id}.${at}`, patch] as const);
  await farm.runs.create(record, [row], refs);
  const ids = await farm.groups.rollouts(record.run_id);
  await farm.jobs.enqueue(record, ids);
  await startHostWorker({ farm, prefix, folder, threads, slots: 2, limitMs: 60_000, hostRewards: true });
  const committed = async () => (await farm.results.counts(record.run_id)).committed;
  await expect.poll(committed, { timeout: 250_000, interval: 100 }).toBe(ids.length);
  const results = await Promise.all(ids.map((id) => farm.results.get(id)));
  return results.flatMap((one) => one ?? []).sort((a, b) => a.rollout_index - b.rollout_index);
}

test.for(Object.entries(LANGUAGES))('%s that does not compile earns 0', async ([, language], { skip }) => {
  if (spawnSync('which', [language.program]).status !== 0) skip(`${language.program} is not installed`);
  const { row, patch } = await place(language);
  const broken = await patch(language.broken);
  const results = await run(row, [broken, broken]);
  for (const result of results)
    expect(result).toMatchObject({
      ...{ outcome: 'judged', reward: 0, resolved: false, reward_row: 'tests_broken_by_patch' },
      ...{ failure: null, attempt: 1, facts: { evaluation: 'tests_cannot_start', tests_start: true } },
    });
});

test('an endless loop earns 0, and an honest fix beside it 1', async () => {
  const { row, patch } = await place(PYTHON);
  const loop = await patch({ 'calc.py': 'while True: pass\n' });
  const [endless, fixed] = await run(row, [loop, row.patch], 8);
  expect(endless).toMatchObject({ outcome: 'judged', reward: 0, reward_row: 'timeout_of_patch' });
  expect(fixed).toMatchObject({ outcome: 'judged', reward: 1 });
});

test('the bug itself is the endless loop: gold tells that the limit is far', async () => {
  const { row, patch } = await place({ ...PYTHON, files: { 'calc.py': 'while True: pass\n' } });
  const other = await patch({ 'calc.py': 'while 1: pass\n' });
  const [endless] = await run(row, [other], 8);
  expect(endless).toMatchObject({ outcome: 'judged', reward: 0, reward_row: 'timeout_of_patch' });
});

test('tests that start with no patch are a failure of the instance, and the result says who knows', async () => {
  const { row, patch } = await place(PYTHON);
  const nowhere = { ...row, eval_script: MARKED(['no-such-program']) };
  const results = await run(nowhere, [await patch(PYTHON.broken), row.patch]);
  expect(results[0]).toMatchObject({
    ...{ outcome: 'failed', reward: null, failure: { class: 'tests_cannot_start' } },
    facts: { tests_start: false },
  });
  expect(results[1]).toMatchObject({ outcome: 'failed', failure: { class: 'tests_cannot_start' } });
});
