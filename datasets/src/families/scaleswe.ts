/** Reads rows of Scale-SWE: a patch and a file contain the tests, and pytest writes JUnit XML. Rules: AweAI-Team/AweAgent bd17814. */
import { shellQuoted } from '@swefarm/shared';
import { heredoc } from '../fields/bash.ts';
import { type FieldReader, isTextList } from '../fields/fields.ts';
import { withTag } from '../fields/image.ts';
import type { Family, InstanceDraft } from './family.ts';
import { attempts, commit, imageOr, issue, PATCH } from './planned.ts';

export const scaleSwe: Family = {
  name: 'scale-swe',
  columns: ['user', 'workdir', 'image_url', 'parent_commit', 'f2p_patch', 'f2p_script', 'pre_commands'],
  fits: (row) =>
    row.parent_commit !== undefined && (row.f2p_script !== undefined || row.f2p_patch !== undefined),
  read: readScale,
};

const RESULTS = '/tmp/_awe_test_results.xml';
const MEMORY_BYTES = 8 * 1024 ** 3;

function readScale(read: FieldReader): InstanceDraft {
  const { row } = read;
  const user = typeof row.user === 'string' ? `${row.user}/` : '';
  const name = read.text('repo', 'add the column repo');
  const base = commit(read, 'parent_commit');
  const workdir = read.text('workdir', 'export the whole row');
  const image = read.image(['image_url', 'image', 'image_name', 'docker_image']);
  const tests = { FAIL_TO_PASS: idsOf(read, 'FAIL_TO_PASS'), PASS_TO_PASS: idsOf(read, 'PASS_TO_PASS') };
  const expected = [...tests.FAIL_TO_PASS, ...tests.PASS_TO_PASS];
  if (expected.length === 0 && read.problems.length === 0)
    read.refuse('no tests', 'FAIL_TO_PASS', 'at least one test id', []);
  return {
    instance_id: read.id(),
    repo: name.includes('/') ? name : `${user}${name}`,
    base_commit: base,
    problem_statement: issue(read),
    ...read.texts('patch'),
    ...tests,
    family: 'scale-swe',
    image: withTag(image ?? imageOr(read, null)),
    environment: {
      workdir: workdir.replace(/\/+$/, '') || workdir,
      activate: '',
      setup: setupOf(read, base),
      memory_bytes: MEMORY_BYTES,
    },
    plan: {
      grader: 'scale-swe',
      apply: APPLY,
      script: scriptOf(read, workdir, expected),
      timeout: 1800,
      outcomes: { from: 'junit', file: RESULTS },
      verdict: { rule: 'junit_ids' },
    },
  };
}

const TEST_PATCH = '/tmp/_awe_f2p.patch';
/** With `--reject`, exit code 1 means that some hunks did not apply, which upstream accepts. */
const rejecting = (command: string) => ({
  name: command,
  argv: ['/bin/bash', '-c', `${command} "$0"; [ $? -le 1 ]`, PATCH],
});
const APPLY = [
  ...attempts(
    'git apply --verbose',
    'git apply --verbose --ignore-space-change --ignore-whitespace',
    'patch --batch --fuzz=5 -p1 -i',
  ),
  rejecting('git apply --verbose --reject'),
  rejecting('git apply --verbose --ignore-space-change --ignore-whitespace --reject'),
];

/** Shell command that tries to apply the test patch by the same commands as the patch of the model. */
const APPLY_TESTS = APPLY.map(({ argv: [program = '', ...rest] }) =>
  program === '/bin/bash'
    ? `(${rest[1]?.replace('"$0"', TEST_PATCH)})`
    : [program, ...rest.slice(0, -1), TEST_PATCH].join(' '),
).join(' || ');

/** Reads a column that contains a list of test ids, the JSON text of a list, or one id. */
function idsOf(read: FieldReader, column: string): string[] {
  const value = read.row[column] ?? '';
  if (value === '') return [];
  if (typeof value !== 'string') return read.tests(column);
  try {
    const parsed: unknown = JSON.parse(value);
    if (isTextList(parsed)) return parsed;
  } catch {
    // Upstream reads any other text as one test id.
  }
  return [value];
}

/** Returns the setup steps. The last step fails if the commands of the row leave HEAD at another commit than the parent commit. */
function setupOf(read: FieldReader, base: string): NonNullable<InstanceDraft['environment']>['setup'] {
  const own = (read.optionalText('pre_commands') ?? '').replace(/(\\n)+\s*$/, '');
  return [
    { name: 'check out the parent commit', script: `git checkout ${base}` },
    ...(own.trim() === '' ? [] : [{ name: "run the row's pre_commands", script: own, may_fail: true }]),
    {
      name: 'compare HEAD with the parent commit',
      script: `[ "$(git rev-parse HEAD)" = "$(git rev-parse '${base}^{commit}')" ]`,
    },
  ];
}

/**
 * Returns a script that restores test files from HEAD, adds the tests of the row and runs pytest. If the test patch does not apply, there
 * are no outcomes.
 */
function scriptOf(read: FieldReader, workdir: string, expected: readonly string[]): string {
  const { f2p_patch: testPatch, f2p_script: testFile } = read.texts('f2p_patch', 'f2p_script');
  const restored = [
    'tests/',
    'test/',
    'Test/',
    'Tests/',
    "'**/test_*.py'",
    "'**/*_test.py'",
    "'**/conftest.py'",
  ];
  return [
    '#!/bin/bash',
    `cd ${shellQuoted(workdir)}`,
    `rm -f ${RESULTS}`,
    ...restored.map((path) => `git checkout HEAD -- ${path} 2>/dev/null`),
    ...(testPatch === '' ? [] : [heredoc(`cat >${TEST_PATCH}`, testPatch), `${APPLY_TESTS} || exit 1`]),
    ...(testFile === '' ? [] : [heredoc('cat >test_fail_to_pass.py', testFile)]),
    heredoc('cat >/tmp/_awe_expected.json', JSON.stringify(expected)),
    heredoc('python -', RUN_PYTEST),
    '',
  ].join('\n');
}

const RUN_PYTEST = `import json
import pytest

with open("/tmp/_awe_expected.json", encoding="utf-8") as file:
    expected = json.load(file)
options = ["-vv", "--junitxml=${RESULTS}", "-o", "addopts=", "--rootdir=."]
code = pytest.main(options + expected)
print("<pytest>%s</pytest>" % ("true" if code == 0 else "false"))
`;
