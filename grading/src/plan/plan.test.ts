import type { Instance, InstancePlan } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { fromTable, instance, ownPlan, replaces, TEST_PATCH } from '../instance.fixture.ts';
import { testDirectives } from './directives.ts';
import { isNoPatch, parserOf, planEvaluation } from './plan.ts';

const exact = { recordExitCode: false };
const lines = (text: string): string[] => text.split('\n');
/** The script without the test patch in the middle. */
const outline = (row: Instance, grader: Parameters<typeof planEvaluation>[1], options = exact): string[] =>
  lines(planEvaluation(row, grader, options).script.replace(row.test_patch, '(patch)'));

describe('4.1.0', () => {
  test('the script of a Python row, line by line', () => {
    expect(outline(instance({ install: 'pip install -e .' }), 'swebench-4.1.0')).toEqual([
      '#!/bin/bash',
      'set -uxo pipefail',
      'source /opt/miniconda3/bin/activate',
      'conda activate testbed',
      'cd /testbed',
      'git config --global --add safe.directory /testbed',
      'cd /testbed',
      'git status',
      'git show',
      'git -c core.fileMode=false diff c0ffee',
      'source /opt/miniconda3/bin/activate',
      'conda activate testbed',
      'pip install -e .',
      'git checkout c0ffee tests/test_crate.py',
      "git apply -v - <<'EOF_114329324912'",
      '(patch)',
      'EOF_114329324912',
      ": '>>>>> Start Test Output'",
      'pytest -rA tests/test_crate.py tests/test_lid.py',
      ": '>>>>> End Test Output'",
      'git checkout c0ffee tests/test_crate.py',
      '',
    ]);
  });

  test('the script records the exit code of the tests around the end marker by default', () => {
    const script = lines(planEvaluation(instance()).script);
    const end = script.indexOf(": '>>>>> End Test Output'");
    expect(script.slice(end - 2, end + 2)).toEqual([
      'pytest -rA tests/test_crate.py tests/test_lid.py',
      'SWEBENCH_TEST_EXIT_CODE=$?',
      ": '>>>>> End Test Output'",
      'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
    ]);
    const without = script.filter((line) => !line.includes('SWEBENCH_TEST_EXIT_CODE'));
    expect(without).toEqual(lines(planEvaluation(instance(), 'auto', exact).script));
  });

  test('a test patch that only adds files switches HEAD to base_commit', () => {
    const added = `diff --git a/t.py b/t.py\nnew file mode 100644\n--- /dev/null\n+++ b/t.py\n@@ -0,0 +1 @@\n+x\n`;
    expect(outline(instance({ test_patch: added }), 'auto')).toContain('git checkout c0ffee ');
  });

  test('the table has command, installation, preparing commands and parser', () => {
    const plan = planEvaluation(fromTable({ repo: 'django/django', version: '3.0', family: 'swebench' }));
    expect(plan).toMatchObject({
      grader: 'swebench-4.1.0',
      outcomes: { dialect: '4.1.0', parser: 'django' },
    });
    expect(plan.script).toContain(
      './tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 test_crate test_lid\n',
    );
    expect(plan.script).toContain('export LANG=en_US.UTF-8\n');
    expect(plan.script).toContain('\npython -m pip install -e .\n');
  });

  test('each field of the row wins over the table', () => {
    const row = {
      ...fromTable({ repo: 'django/django', version: '3.0', family: 'swebench' }),
      test_cmd: 'true',
    };
    const plan = planEvaluation(row);
    expect(parserOf(plan)).toBe('django');
    expect(plan.script).toContain('\ntrue test_crate test_lid\n');
  });

  test('other languages share one script: no activation, a build, several commands', () => {
    const row = fromTable({ repo: 'jqlang/jq', version: '2235', family: 'swebench' });
    const script = outline(row, 'auto');
    expect(script.slice(0, 7)).toEqual([
      '#!/bin/bash',
      'set -uxo pipefail',
      'cd /testbed',
      'git config --global --add safe.directory /testbed',
      'cd /testbed',
      'git checkout c0ffee tests/test_crate.py',
      "git apply --verbose --reject - <<'EOF_114329324912'",
    ]);
    expect(script.indexOf(": '>>>>> Start Test Output'")).toBeGreaterThan(9);
    expect(script.join('\n')).not.toContain('conda');
  });

  test('calypso runs each file by a separate command', () => {
    const test_patch = replaces('client/x/test/a.js', 'a', 'b');
    const row = fromTable({
      repo: 'Automattic/wp-calypso',
      version: '10.10.0',
      test_patch,
      family: 'swebench',
    });
    expect(outline(row, 'auto')).toContain(
      "./node_modules/.bin/jest --verbose -c=test/client/jest.config.js 'client/x/test/a.js'",
    );
  });

  test('the patch has three attempts without a reset', () => {
    const plan = planEvaluation(instance());
    expect(plan.apply.map((attempt) => attempt.argv.join(' '))).toEqual([
      'git apply --verbose /tmp/patch.diff',
      'git apply --verbose --reject /tmp/patch.diff',
      'patch --batch --fuzz=5 -p1 -i /tmp/patch.diff',
    ]);
    expect(plan.reset_between).toEqual([]);
    expect(plan.already_applied).toBeUndefined();
  });
});

describe('5.0.2', () => {
  const own =
    "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n: '>>>>> Start Test Output'\nrun\n: '>>>>> End Test Output'\nreset\n";
  const row = instance({ eval_script: own, log_parser: 'parse_log_pytest_v2', eval_type: 'pass_and_fail' });

  test('rows with script, parser and type use it with their own script', () => {
    const plan = planEvaluation(row, 'auto', exact);
    expect(plan).toMatchObject({
      grader: 'swebench-5.0.2',
      outcomes: { dialect: '5.0.2', parser: 'pytest_v2' },
      verdict: { rule: 'swebench-5' },
    });
    expect(lines(plan.script)).toEqual([
      '#!/bin/bash',
      'set -uxo pipefail',
      'cd /testbed',
      ": '>>>>> Start Test Output'",
      'run',
      'SWEBENCH_TEST_EXIT_CODE=$?',
      ": '>>>>> End Test Output'",
      'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
      'reset',
      '',
    ]);
  });

  test('the tree is reset between four attempts; an already applied patch counts', () => {
    const plan = planEvaluation(row);
    expect(plan.apply.map((attempt) => attempt.name)).toEqual([
      'git apply --verbose',
      'git apply --verbose --3way',
      'git apply --verbose --reject',
      'patch --batch --forward --fuzz=5 -p1 -i',
    ]);
    expect(plan.reset_between).toHaveLength(1);
    expect(plan.already_applied).toContain('--reverse');
  });
});

describe('SWE-Gym', () => {
  test('scripts have no markers, its own diff, and lower-case names', () => {
    const row = fromTable({ repo: 'GetMoto/moto', version: '5.0', family: 'swegym' });
    const plan = planEvaluation(row, 'auto', exact);
    expect(plan).toMatchObject({
      grader: 'swegym',
      outcomes: { dialect: 'swegym', parser: 'pytest' },
      verdict: { rule: 'swebench' },
    });
    expect(outline(row, 'auto').slice(0, 14)).toEqual([
      '#!/bin/bash',
      'set -xo pipefail',
      'source /opt/miniconda3/bin/activate',
      'conda activate testbed',
      'cd /testbed',
      'git config --global --add safe.directory /testbed',
      'cd /testbed',
      'git status',
      'git show',
      'git diff c0ffee',
      'source /opt/miniconda3/bin/activate',
      'conda activate testbed',
      'make init',
      'git checkout c0ffee tests/test_crate.py',
    ]);
    expect(plan.script).toContain('\npytest -n0 -rA tests/test_crate.py tests/test_lid.py\n');
    expect(plan.script).not.toContain('>>>>>');
    expect(planEvaluation(row).script).toContain('Test Exit Code');
  });

  test('mypy runs by the names of its cases', () => {
    const patch = `${TEST_PATCH}diff --git a/test-data/unit/check.test b/test-data/unit/check.test
--- a/test-data/unit/check.test
+++ b/test-data/unit/check.test
@@ -1 +1,4 @@
 [case testOld]
+[case testNew]
+[case testNewer-skip]
+[]
`;
    const row = fromTable({ repo: 'python/mypy', version: '1.7', family: 'swegym', test_patch: patch });
    expect(planEvaluation(row).script).toContain('\npytest -rA -k "testOld or testNew or testNewer-skip"\n');
  });

  test('rows of its repositories with their own test command are graded by 4.1.0', () => {
    expect(planEvaluation(instance({ repo: 'getmoto/moto', family: 'swegym' })).grader).toBe(
      'swebench-4.1.0',
    );
  });
});

describe('a plan in the row', () => {
  const row = (changes: Partial<InstancePlan> = {}) => instance({ plan: ownPlan(changes), FAIL_TO_PASS: [] });

  test('wins over the columns, with the canonical name of the parser', () => {
    expect(planEvaluation(row())).toEqual({
      ...ownPlan(),
      outcomes: { from: 'log', dialect: '4.1.0', parser: 'pytest_v2' },
    });
  });

  test('is not replaced by --grader, which may only name its grader', () => {
    expect(() => planEvaluation(row(), 'swebench-4.1.0')).toThrow(
      'depot__crate-7: its row is graded as quay-1.0, and not by --grader swebench-4.1.0; leave that out',
    );
    expect(planEvaluation(row({ grader: 'swegym-2' }), 'swegym').grader).toBe('swegym-2');
  });

  test.each([
    [{ outcomes: { from: 'log', dialect: 'quay', parser: 'pytest' } }, /plan\.outcomes\.dialect: "quay"/],
    [{ outcomes: { from: 'log', dialect: '4.1.0', parser: 'nose' } }, /log parser "nose" is unknown/],
    [{ outcomes: { from: 'exit_code', pattern: '(a+)+$' } }, /plan\.outcomes\.pattern: expected plain text/],
  ] as const)('is refused by name where %j is not known', (changes, expected) => {
    expect(() => planEvaluation(row(changes as Partial<InstancePlan>))).toThrow(expected);
  });
});

test('a row of SWE-smith without a plan is refused: its image has no bug', () => {
  expect(() => planEvaluation(instance({ family: 'swesmith' }))).toThrow(/read the dataset again/);
});

describe('directives', () => {
  test('data files are omitted, csv only in lower case, and the order is preserved', () => {
    const patch = ['b/t_b.py', 'b/a.yaml', 'b/notcsv', 'b/a.csv', 'b/t_a.py', 'b/dir b/x y.py']
      .map((file) => `diff --git a/${file.slice(2)} ${file}`)
      .join('\n');
    expect(testDirectives({ repo: 'a/b', test_patch: patch })).toEqual(['t_b.py', 't_a.py', 'x y.py']);
  });

  test('those of Django are modules', () => {
    const patch =
      'diff --git a/tests/gates/tests.py b/tests/gates/tests.py\ndiff --git a/x/tests/y.txt b/x/tests/y.html\n';
    expect(testDirectives({ repo: 'django/django', test_patch: patch })).toEqual([
      'gates.tests',
      'x.tests.y.html',
    ]);
  });
});

describe('the error of a row that cannot be graded names the missing columns', () => {
  const message = (row: Instance, grader?: Parameters<typeof planEvaluation>[1]): string => {
    try {
      planEvaluation(row, grader);
    } catch (error) {
      expect(error).toMatchObject({ code: 'instance_invalid' });
      return (error as Error).message;
    }
    throw new Error('it was planned');
  };

  const flask = fromTable({ repo: 'pallets/flask', version: '9' });
  const patched = (test_patch: string) => instance({ test_patch });
  const short = '--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n';
  const ended = `${TEST_PATCH}EOF_114329324912\n`;

  test.each<[string, Instance, RegExp, Parameters<typeof planEvaluation>[1]?]>([
    ['repo', fromTable({}), /no test command is known for repo "depot\/crate"/],
    ['version', flask, /version "9" of pallets\/flask .*2\.0/],
    ['table', fromTable({ repo: 'getmoto/moto' }), /the swegym table has it/, 'swebench-4.1.0'],
    ['parser', instance({ log_parser: 'nose' }), /log parser "nose" is unknown .*pytest_v2/],
    [
      'parser of another harness',
      instance({ log_parser: 'pytest_pydantic' }),
      /is unknown to swebench-4\.1\.0/,
    ],
    ['tests', instance({ FAIL_TO_PASS: [], PASS_TO_PASS: [] }), /no FAIL_TO_PASS and no PASS_TO_PASS/],
    ['test patch', patched('@@ -1 +1 @@\n'), /test_patch: line 1: a hunk without a file/],
    ['short hunk', patched(short), /test_patch: line 3: the hunk is shorter/],
    ['heredoc', patched(ended), /contains the line EOF_114329324912/],
  ])('%s', (_what, row, expected, grader) => {
    expect(message(row, grader)).toMatch(expected);
  });
});

test('only the fork accepts a blank patch', () => {
  const blank = (grader: 'swegym' | 'swebench-5.0.2') => planEvaluation(instance(), grader);
  expect(['', '\n', 'a'].map((patch) => isNoPatch(patch, blank('swegym')))).toEqual([true, false, false]);
  expect(['', '\n', 'a'].map((patch) => isNoPatch(patch, blank('swebench-5.0.2')))).toEqual([
    true,
    true,
    false,
  ]);
});
