import { existsSync, readFileSync } from 'node:fs';
import { smithCommand, smithProject, smithProjects, testFilesOf } from '@swefarm/grading';
import { describe, expect, test } from 'vitest';
import { toInstance } from '../row.ts';

const PATCH = `diff --git a/parse.py b/parse.py
--- a/parse.py
+++ b/parse.py
@@ -1 +1 @@
-good
+bad
`;
const ROW = {
  instance_id: 'r1chardj0n3s__parse.30da9e4f.func_basic__aaaa1111',
  repo: 'swesmith/r1chardj0n3s__parse.30da9e4f',
  patch: PATCH,
  FAIL_TO_PASS: ['tests/test_parse.py::test_a'],
  PASS_TO_PASS: ['tests/test_parse.py::test_b', 'tests/test_more.py::test_c'],
  image_name: 'swebench/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f',
  problem_statement: 'It is broken.',
};

const read = (over: object = {}) => toInstance('line 1', { ...ROW, ...over });
function instance(over: object = {}) {
  const result = read(over);
  if ('problems' in result) throw new Error(JSON.stringify(result.problems));
  return result.instance;
}
const problems = (over: object) => {
  const result = read(over);
  return 'problems' in result ? result.problems : [];
};
const of = (name: string, over: object = {}) =>
  instance({ repo: `swesmith/${name}`, instance_id: `${name}.func__a`, image_name: null, ...over });

describe('a row', () => {
  test('has the reversed patch as gold, its own sandbox and its own plan', () => {
    const made = instance();
    expect(made).toMatchObject({
      base_commit: '30da9e4f',
      patch: expect.stringContaining('-bad\n+good\n'),
      family: 'swesmith',
      environment: { workdir: '/testbed', history: 'replaced', hidden: [] },
      plan: {
        grader: 'swesmith-9b74ac0',
        timeout: 90,
        blank: 'tests_run',
        unapplied: 'ends',
        outcomes: { from: 'log', dialect: 'swesmith', parser: 'python-pytest-v' },
        verdict: { rule: 'swebench' },
      },
    });
    expect(made.environment?.activate).toBeUndefined();
    expect(made.environment?.setup.map(({ name, roles }) => [name, roles])).toEqual([
      ['put the bug in', ['agent', 'evaluation']],
      ['hide the tests', ['agent']],
    ]);
    expect(made.plan?.script.split('\n').slice(0, 6)).toEqual([
      '#!/bin/bash',
      'set -uxo pipefail',
      'cd /testbed',
      ": '>>>>> Start Test Output'",
      'source /opt/miniconda3/bin/activate; conda activate testbed; pytest --disable-warnings --color=no --tb=no --verbose',
      'SWEBENCH_TEST_EXIT_CODE=$?',
    ]);
    expect(made.plan?.apply.map(({ name }) => name)).toEqual([
      'git apply --verbose',
      'git apply --verbose --reject',
      'patch --batch --fuzz=5 -p1 -i',
    ]);
  });

  test('does not reveal the fix to the agent', () => {
    const { problem_statement, hints_text, base_commit } = instance({ base_commit: 'd1c5199b6a9d' });
    expect([problem_statement, hints_text, base_commit]).toEqual(['It is broken.', '', '30da9e4f']);
  });

  test('is read by its id alone, by older image names, and without a problem statement', () => {
    const image = 'swebench/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f:latest';
    for (const name of [
      'swesmith.x86_64.r1chardj0n3s__parse.30da9e4f',
      'jyangballin/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f',
      'docker.io/swebench/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f:latest',
      null,
    ]) {
      expect(instance({ image_name: name, problem_statement: null })).toMatchObject({ image });
    }
    expect(instance({ repo: 'r1chardj0n3s/parse' }).image).toBe(image);
  });

  test('may use an image of this machine or of a private registry', () => {
    const own = 'registry.lab:5000/mirror/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f:v2';
    expect(instance({ image_name: own }).image).not.toBe(own);
    const same = 'registry.lab:5000/mirror/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f';
    expect(instance({ image_name: same }).image).toBe(same);
    expect(instance({ image_name: 'dir:/images/parse' }).image).toBe('dir:/images/parse');
  });

  test('of another language activates no environment', () => {
    expect(of('gin-gonic__gin.3c12d2a8').environment?.activate).toBe('');
    expect(of('pydantic__pydantic.acb0f10f').environment?.activate).toBe('');
    expect(of('tj__commander.js.395cf714')).toMatchObject({
      image: 'swebench/swesmith.x86_64.tj_1776_commander.js.395cf714:latest',
      plan: { outcomes: { parser: 'jest' } },
    });
    expect(of('Qix-__color.fef7b619').image).toBe('swebench/swesmith.x86_64.qix__1776_color.fef7b619:latest');
  });
});

describe('rows that cannot be graded are refused by name', () => {
  test.each([
    ['nobody__nothing.0a1b2c3d', 'SWE-smith has no profile of the project'],
    ['mosra__magnum.f3a4ce7d', 'the image has no tree in /testbed'],
    ['TileDB-Inc__TileDB.13d41286', 'the image has no tree in /testbed'],
    ['jquery__jquery.c28c26ae', 'SWE-smith names a log reader that it lacks'],
  ])('%s', (name, reason) => {
    expect(problems({ repo: `swesmith/${name}`, image_name: null })).toMatchObject([
      { where: 'line 1', field: 'repo', ungradable: reason },
    ]);
  });

  test('a row without patch or tests is no instance', () => {
    expect(problems({ patch: '' }).map(({ field }) => field)).toEqual(['patch']);
    expect(problems({ FAIL_TO_PASS: [], PASS_TO_PASS: [] }).map(({ field }) => field)).toEqual([
      'FAIL_TO_PASS',
    ]);
  });
});

test('the plan of every project', () => {
  const plans = smithProjects().map((name) => {
    const project = smithProject(name);
    return [
      project?.image.replace(/^swebench\/swesmith\.x86_64\./, '').replace(/:latest$/, ''),
      project?.language,
      project?.parser,
      `${project?.timeoutSeconds} s`,
      project?.testFiles,
      ...(project?.minTesting ? ['its files only'] : []),
      ...(project?.commandRule ? [project.commandRule] : []),
      ...(project?.treeElsewhere ? [`refused: ${project.treeElsewhere}`] : []),
      project?.testCommand,
    ].join(' | ');
  });
  expect(plans).toHaveLength(833);
  expect(`${plans.sort().join('\n')}\n`).toMatchSnapshot();
});

/** Test commands and files as SWE-smith's own code returns them. Only some machines have this file beside the repository. */
const CORPUS = new URL('../../../../shared/grading/families/swe-smith.jsonl', import.meta.url);
type CommandCase = {
  case: string;
  parser: string;
  rows: {
    repo: string;
    FAIL_TO_PASS?: string[];
    PASS_TO_PASS?: string[];
    patch?: string;
    f2p_only?: boolean;
    instance_ref?: { test_patch: string };
  };
  expected: { cmd: string; test_files: [string[], string[]] | { error: string } };
};

describe('the commands of SWE-smith itself', () => {
  const here = existsSync(CORPUS);
  const cases = (here ? readFileSync(CORPUS, 'utf8').trim().split('\n') : [])
    .map((line): CommandCase => JSON.parse(line))
    .filter(({ parser }) => parser === 'test-cmd');

  test('are beside the repository', ({ skip }) => {
    skip(!here, '../shared/grading/families is not beside the repository');
    expect(cases.length).toBeGreaterThan(0);
  });

  test.each(cases)('$case', ({ rows, expected }) => {
    const project = smithProject(rows.repo.replace('swesmith/', ''));
    if (!project) throw new Error(rows.repo);
    const { FAIL_TO_PASS = [], PASS_TO_PASS = [], patch = '', instance_ref, f2p_only } = rows;
    const refTestPatch = instance_ref?.test_patch ?? '';
    // The farm lacks this option and runs the harness's default.
    if (!f2p_only)
      expect(smithCommand(project, { FAIL_TO_PASS, PASS_TO_PASS, patch, refTestPatch })).toBe(expected.cmd);
    if ('error' in expected.test_files) return;
    const found = [FAIL_TO_PASS, PASS_TO_PASS].map((tests) => testFilesOf(project.testFiles, tests));
    expect(found).toEqual(expected.test_files.map((files) => ({ rule: 'files', files })));
  });
});

test('large Python projects run the files of the tests, FAIL_TO_PASS first', () => {
  const tests = { FAIL_TO_PASS: ['b.py::x', 'a.py::y'], PASS_TO_PASS: ['c.py::z', 'a.py::z', 'c.py::w'] };
  expect(of('pandas-dev__pandas.95280573', tests).plan?.script).toContain(
    ' --tb=no --verbose a.py b.py a.py c.py\n',
  );
  expect(of('scrapy__scrapy.35212ec5', { ...tests, FAIL_TO_PASS: [] }).plan?.script).toContain('--verbose\n');
});

test('Babel tests the packages that the patch changes', () => {
  const patch = ['a/x.js', 'a/y.js', 'b/z.js']
    .map((path) => `diff --git a/packages/babel-${path} b/packages/babel-${path}\n`)
    .join('');
  expect(of('babel__babel.2ea3fc8f', { patch }).plan?.script).toContain(
    '\nyarn jest --verbose packages/babel-a packages/babel-b\n',
  );
});

const GIVEN = new URL('../../../../shared/rows/swe-smith-1.jsonl', import.meta.url);

test('a real row is read; its commit and its older image name are ignored', ({ skip }) => {
  skip(!existsSync(GIVEN), '../shared/rows is not beside the repository');
  const result = toInstance('line 1', JSON.parse(readFileSync(GIVEN, 'utf8')));
  expect(result).toMatchObject({
    instance: {
      instance_id: 'pandas-dev__pandas.95280573.pr_53652',
      base_commit: '95280573',
      image: 'swebench/swesmith.x86_64.pandas-dev_1776_pandas.95280573:latest',
      plan: {
        script: expect.stringContaining(
          '--verbose pandas/tests/indexing/test_datetime.py pandas/tests/indexing/test_datetime.py\n',
        ),
      },
    },
  });
});
