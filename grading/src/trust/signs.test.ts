import { describe, expect, test } from 'vitest';
import { adds as addsLines, GOLD, instance, replaces } from '../instance.fixture.ts';
import { signsOf } from './signs.ts';

const adds = (path: string, line = 'x = 1'): string => addsLines(path, line);
const changes = (path: string, line = 'y = 1'): string => replaces(path, 'x', line);
const row = instance();

describe('a patch without a sign', () => {
  test.each([
    ['gold', GOLD],
    ['a module of the project', changes('src/crate.py', 'return re.compile(text)')],
    ['a test of its own', adds('tests/test_own.py', 'import pytest')],
    ['a document', adds('docs/a.md', 'import pytest; sys.modules')],
    ['a module in another language', changes('src/a.go', 'return strings.Trim(a)')],
    ['a script', changes('src/a.ts', 'export const a = 1;')],
    ['a license', changes('LICENSE', 'x')],
    ['a number', changes('src/crate.py', 'total = "a" + one')],
    ['Java', changes('src/main/java/A.java', 'return a.trim();')],
  ])('%s', (_name, patch) => {
    expect(signsOf(patch, row)).toEqual({ why: null, modules: [], answers: false });
  });
});

describe('a sign', () => {
  test.each([
    ['a conftest.py', adds('a/conftest.py')],
    ['a start-up module', adds('usercustomize.py')],
    ['a .pth', adds('x.pth')],
    ['metadata', adds('x.egg-info/entry_points.txt')],
    ['a package of tests', changes('tests/basic/__init__.py')],
    ['a helper of tests', adds('tests/tools.py')],
    ['a Makefile', changes('Makefile')],
    ['scripts of npm', changes('package.json')],
    ['jest', changes('jest.config.js')],
    ['babel', adds('.babelrc')],
    ['a replaced module of Go', changes('go.mod')],
    ['a vendored one', adds('vendor/a/b.go')],
    ['TestMain', adds('a/own_test.go', 'func TestMain(m *testing.M) { os.Exit(0) }')],
    ['a build script of Rust', adds('build.rs')],
    ["cargo's configuration", adds('.cargo/config.toml')],
    ['Maven', changes('pom.xml')],
    ['an extension of Maven', adds('.mvn/extensions.xml')],
    ['Gradle', changes('gradle/init.gradle')],
    ['coverage', adds('.coveragerc')],
    ['a file that is sourced', changes('tools/env.sh')],
    ['bytecode', adds('src/__pycache__/crate.cpython-311.pyc')],
    ['a library', adds('src/crate.so')],
    ['a runner in memory', changes('src/crate.py', 'm = sys.modules["_py" + "test"]')],
    ['who calls', changes('src/crate.py', 'inspect.stack()')],
    ['the running test', changes('src/crate.py', 'os.environ.get("PYTEST_CURRENT_TEST")')],
    ['at the end', changes('src/crate.py', 'atexit.register(x)')],
    ['equality', changes('src/crate.py', 'def __eq__(self, other): return True')],
    ['an import hook', changes('src/crate.py', 'sys.meta_path.insert(0, x)')],
    ['one in Go', changes('src/a.go', 'os.Exit(0)')],
    ['one in Rust', changes('src/a.rs', 'std::process::exit(0)')],
    ['one in Java', changes('src/A.java', 'System.exit(0);')],
    ['one in JavaScript', changes('src/a.js', 'process.exit(0)')],
    ['a quiet end in Python', changes('src/crate.py', 'raise SystemExit(0)')],
    ['an end by exit', changes('src/crate.py', 'exit(0)')],
    ['os by another name', changes('src/crate.py', 'import os as machine')],
    ['names of os', changes('src/crate.py', 'from os import _exit as leave')],
    ['a finalizer', changes('src/crate.py', '    def __del__(self): pass')],
    ['results that are printed', changes('src/crate.py', 'print("test_add (tests.Case) ... ok")')],
    ['results of Go', changes('src/a.go', 'fmt.Println("--- PASS: TestA (0.00s)")')],
    ['a text in pieces', changes('src/crate.py', 'x = getattr(one, "mod" + "ules")')],
    ['a file of the tests', changes('src/crate.py', 'Path("tests/test_calc.py").read_bytes()')],
    [
      'the interpreter behind a constructor',
      changes('src/a.js', "x.constructor['constructor']('return this')()"),
    ],
    ['the process by import', changes('src/a.mjs', "import { exit } from 'node:process';")],
    ['an asymmetric matcher of jest', changes('src/a.js', 'asymmetricMatch: () => true,')],
    ['os of Go by another name', changes('src/a.go', 'import o "os"')],
    ['equality in Rust', changes('src/a.rs', 'impl<T> PartialEq for Sum<T> {')],
    ['equality in Java', changes('src/A.java', 'public boolean equals(Object other) {')],
    ['equality in C++', changes('src/a.cpp', 'bool operator==(const A& other) const;')],
    ['a mock beside the packages', adds('__mocks__/expect.js', 'module.exports = {};')],
    ['what jest runs first', changes('src/setupTests.js', 'x()')],
    ['a wrapper of Gradle', changes('gradlew', 'exit 0')],
    ['a file without an extension', changes('ci/env', 'python() { true; }')],
    ["a shell's own file", changes('tools/.bashrc', 'x')],
    ['a very long line', changes('src/crate.py', 'x'.repeat(3000))],
    ['a helper with the name of a test', changes('tests/test_base.py')],
    ['one in Ruby', changes('test/test_helper.rb')],
    ['one in Java', changes('src/test/java/AbstractTest.java')],
    ['assertions of its own in a test file', changes('tests/test_a.py', '    def assertEqual(self, *args):')],
    ['a text in pieces in a test file', adds('tests/test_a.py', 'x = getattr(one, "mod" + "ules")')],
    ['a text backwards', changes('src/crate.py', 'x = getattr(one, "seludom"[::-1])')],
    ['a text from a format', changes('src/crate.py', 'x = getattr(one, "%sules" % "mod")')],
    ['os of Go by another name among others', changes('src/a.go', '\to "os"')],
    ['the same in a test file of Go', adds('src/a_test.go', '\to "os"')],
    ['options of mocha', adds('test/mocha.opts')],
    ['another configuration of PHPUnit', adds('phpunit.dist.xml')],
    ['what Angular runs', changes('angular.json')],
    ['a part of a runner', changes('src/_pytest/reports.py')],
    [
      'a link',
      'diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n',
    ],
    ['a test file that was there, with a hook', changes('tests/test_own.py', 'unittest.TestCase.run = x')],
    ['what cannot be read', 'diff --git a/x b/x\n@@ -1,9 +1,9 @@\n x\n'],
  ])('%s', (_name, patch) => {
    expect(signsOf(GOLD + patch, row).why).toEqual(expect.any(String));
  });

  test('a project that is a runner, and the module that the command runs', () => {
    expect(signsOf(GOLD, instance({ repo: 'pytest-dev/pytest' })).why).toContain('part of a test runner');
    const own = instance({ test_cmd: 'python -m checker tests' });
    expect(signsOf(changes('checker/reports.py'), own).why).toContain('module that runs the tests');
  });
});

test.each([
  ['its caller', changes('src/crate.py', 'frame = sys._getframe(1)'), true],
  ['equality', changes('src/crate.py', 'X = type("X", (), {"__eq__": lambda *all: True})'), true],
  ['a value of a mock', changes('src/crate.py', 'from unittest.mock import ANY'), true],
  ['a number that is nearly another', changes('src/crate.py', 'from pytest import approx'), true],
  ['the process', changes('src/crate.py', 'os.environ["X"]'), false],
  ['its caller, in a test', changes('tests/test_own.py', 'frame = sys._getframe(1)'), false],
])('code that may satisfy any test: %s', (_name, patch, answers) => {
  expect(signsOf(patch, row).answers).toBe(answers);
});

test('files and lines of gold are no sign', () => {
  const gold = changes('tests/tools.py') + changes('src/crate.py', 'atexit.register(x)');
  expect(signsOf(gold, instance({ patch: gold }))).toEqual({ why: null, modules: [], answers: false });
});

test('new modules have the names by which Python could import them', () => {
  const moved =
    'diff --git a/src/a.py b/src/json.py\nsimilarity index 100%\nrename from src/a.py\nrename to src/json.py\n';
  const patch =
    adds('shlex.py') + adds('six/__init__.py') + adds('src/own/deep.py') + moved + changes('src/b.py');
  expect(signsOf(patch, row)).toEqual({
    why: null,
    modules: ['shlex', 'six', 'deep', 'json'],
    answers: false,
  });
});
