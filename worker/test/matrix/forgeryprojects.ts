/** Small projects with a bug, made in a container before a patch is applied. Each runs its tests in another way. */
import type { InstancePlan } from '@swefarm/shared';
import { Instance } from '@swefarm/shared';

type Tree = Record<string, string>;
export type Project = { row: Instance; tree: Tree; plan: Partial<InstancePlan> };

const lines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

/** A diff that replaces whole files; null removes one. */
export function diff(tree: Tree, changes: Record<string, string | null>): string {
  return Object.entries(changes)
    .map(([path, text]) => {
      const [from, to] = [lines(tree[path] ?? ''), lines(text ?? '')];
      const kind = !(path in tree)
        ? 'new file mode 100644\n'
        : text === null
          ? 'deleted file mode 100644\n'
          : '';
      const head = `diff --git a/${path} b/${path}\n${kind}`;
      if (from.length + to.length === 0) return head;
      const source = path in tree ? `a/${path}` : '/dev/null';
      const target = text === null ? '/dev/null' : `b/${path}`;
      const range = (all: string[]): string => `${all.length === 0 ? 0 : 1},${all.length}`;
      const body = [...from.map((line) => `-${line}`), ...to.map((line) => `+${line}`)];
      return `${head}--- ${source}\n+++ ${target}\n@@ -${range(from)} +${range(to)} @@\n${body.join('\n')}\n`;
    })
    .join('');
}

export function made(
  name: string,
  tree: Tree,
  fix: Tree,
  tests: Tree,
  command: string,
  ids: { gains: string[]; maintains: string[] },
  parser: string,
  activate = 'source /opt/miniconda3/bin/activate; conda activate testbed',
): Project {
  const files = Object.entries(tree).map(
    ([path, text]) => `mkdir -p "$(dirname ${path})"; cat >${path} <<'SF_FILE'\n${text}SF_FILE`,
  );
  const repo = [
    'cd /testbed; find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +',
    ...files,
    '[ -e .git ] || git init -q .',
    'git add -A -f; git -c user.name=n -c user.email=e@x commit -qm base',
  ].join('\n');
  const testPatch = diff(tree, tests);
  const reset = `git checkout HEAD ${Object.keys(tests)
    .filter((path) => path in tree)
    .join(' ')}`;
  const script = [
    '#!/bin/bash',
    'set -uxo pipefail',
    activate,
    'cd /testbed',
    reset,
    `git apply -v - <<'EOF_114329324912'\n${testPatch}\nEOF_114329324912`,
    ": '>>>>> Start Test Output'",
    command,
    ": '>>>>> End Test Output'",
    reset,
    '',
  ].join('\n');
  const row = Instance.parse({
    ...{ instance_id: `made__${name}-1`, repo: `made/${name}`, base_commit: 'HEAD' },
    ...{ problem_statement: 'It is wrong.', family: 'custom', image: 'made:1' },
    ...{ patch: diff(tree, fix), test_patch: testPatch, eval_script: script, log_parser: parser },
    ...{ FAIL_TO_PASS: ids.gains, PASS_TO_PASS: ids.maintains },
  });
  return { row, tree, plan: { before: [{ name: 'repo', script: repo, may_fail: false, timeout: 60 }] } };
}

const BUG = 'def add(a, b):\n    return a - b\n\n\ndef label(a):\n    return "<%s>" % a\n';
const FIX = BUG.replace('a - b', 'a + b');
const RUNTESTS = `import argparse
import os
import sys
import unittest
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser()
parser.add_argument("--verbosity", type=int, default=2)
parser.add_argument("labels", nargs="*")
options = parser.parse_args()
suite = unittest.defaultTestLoader.loadTestsFromNames(options.labels)
result = unittest.TextTestRunner(verbosity=options.verbosity).run(suite)
sys.exit(not result.wasSuccessful())
`;
const CASES = `import unittest

import calc


class AddTests(unittest.TestCase):
    def test_label(self):
        self.assertEqual(calc.label(1), "<1>")
`;
const MORE_CASES = `${CASES}
    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)

    def test_add_texts(self):
        with self.subTest("texts"):
            self.assertEqual(calc.add("a", "b"), "ab")
`;
const caseId = (name: string): string => `${name} (basic.tests.AddTests.${name})`;

/** A project whose tests are cases of unittest. @param cases path of the tests, and their text before and after the test patch */
const caseProject = (
  name: string,
  tree: Tree,
  cases: [path: string, before: string, after: string],
  command: string,
) => {
  const [path, before, after] = cases;
  return made(
    name,
    { 'calc/__init__.py': BUG, ...tree, [path]: before },
    { 'calc/__init__.py': FIX },
    { [path]: after },
    command,
    { gains: [caseId('test_add'), caseId('test_add_texts')], maintains: [caseId('test_label')] },
    'django',
  );
};
const RUNS_TESTS = 'python tests/runtests.py --verbosity 2 basic.tests';
const RUNNER_TREE = { 'tests/runtests.py': RUNTESTS, 'tests/basic/__init__.py': '' };

/** A project with tests as Django has them: a script of the repository runs them by unittest. */
export const unittestProject = (): Project =>
  caseProject('calc', RUNNER_TREE, ['tests/basic/tests.py', CASES, MORE_CASES], RUNS_TESTS);

const onBase = (cases: string): string =>
  cases
    .replace('import unittest\n', 'from basic.test_base import Case\n')
    .replace('unittest.TestCase', 'Case');
const BASE = 'import unittest\n\n\nclass Case(unittest.TestCase):\n    pass\n';

/** A project whose test class comes from a helper module with the name of a test. */
export const helperProject = (): Project =>
  caseProject(
    'based',
    { ...RUNNER_TREE, 'tests/basic/test_base.py': BASE },
    ['tests/basic/tests.py', onBase(CASES), onBase(MORE_CASES)],
    RUNS_TESTS,
  );

/** A project whose tests a script of the repository starts, which sources another file. */
export const wrapperProject = (): Project =>
  caseProject(
    'wrapped',
    {
      'ci/test.sh': '. ci/env\npython -m unittest -v basic.tests\n',
      'ci/env': 'export LANG=C.UTF-8\n',
      'basic/__init__.py': '',
    },
    ['basic/tests.py', CASES, MORE_CASES],
    'bash ci/test.sh',
  );

const FUNCTIONS = 'import calc\n\n\ndef test_label():\n    assert calc.label(1) == "<1>"\n';
const MORE_FUNCTIONS = `${FUNCTIONS}

def test_add():
    assert calc.add(2, 3) == 5


def test_add_texts():
    """Adds texts too."""
    for one in "ab":
        assert calc.add(one, "c") == one + "c"
`;
const functionIds = {
  gains: ['tests/test_calc.py::test_add', 'tests/test_calc.py::test_add_texts'],
  maintains: ['tests/test_calc.py::test_label'],
};

/** A project with tests of pytest, which runs with the root of the repository first on the path. */
export const pytestProject = (named = 'tests/test_calc.py'): Project =>
  made(
    'calc',
    { 'calc/__init__.py': BUG, 'tests/test_calc.py': FUNCTIONS },
    { 'calc/__init__.py': FIX },
    { 'tests/test_calc.py': MORE_FUNCTIONS },
    `python -m pytest -rA -p no:cacheprovider ${named}`,
    functionIds,
    'pytest',
  );

const RUNNER = `import importlib.util
import sys

from .reports import word


def main(path):
    spec = importlib.util.spec_from_file_location("cases", path)
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    failed = 0
    for name in sorted(vars(cases)):
        if not name.startswith("test_"):
            continue
        try:
            getattr(cases, name)()
            error = None
        except Exception as raised:
            error = raised
        failed += error is not None
        print(word(error), path + "::" + name)
    print("=== %d %s in 0.10s ===" % (3, "failed" if failed else "passed"))
    return 0
`;
const REPORTS = 'def word(error):\n    return "PASSED" if error is None else "FAILED"\n';

/** A project with its own test runner. */
export const runnerProject = (): Project =>
  made(
    'checker',
    {
      'checker/__init__.py': '',
      'checker/__main__.py': 'import sys\nfrom .run import main\nsys.exit(main(sys.argv[1]))\n',
      'checker/run.py': RUNNER,
      'checker/reports.py': REPORTS,
      'calc/__init__.py': BUG,
      'tests/test_calc.py': FUNCTIONS,
    },
    { 'calc/__init__.py': FIX },
    { 'tests/test_calc.py': MORE_FUNCTIONS },
    'python -m checker tests/test_calc.py',
    functionIds,
    'pytest',
  );
