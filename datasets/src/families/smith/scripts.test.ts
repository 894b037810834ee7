import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { testFilesOf } from '@swefarm/grading';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { hideScript, restoreScript, roomScript, type SmithTree, startScript } from './scripts.ts';

const ID = 'pier__crane.0a1b2c3d.func_basic__aaaa1111';
const FIXED = 'def lift(load):\n    return load <= 9\n';
const BROKEN = 'def lift(load):\n    return load < 9\n';
const BUG = `diff --git a/crane.py b/crane.py
--- a/crane.py
+++ b/crane.py
@@ -1,2 +1,2 @@
 def lift(load):
-    return load <= 9
+    return load < 9
`;

let folder: string;
const at = (path: string): string => join(folder, path);
const read = (path: string): string => readFileSync(at(path), 'utf8');
const git = (...argv: string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...argv], {
    cwd: folder,
    encoding: 'utf8',
  }).trim();

function write(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), text);
  }
}

function commit(subject: string, files: Record<string, string> = {}): void {
  write(files);
  git('add', '-A');
  git('commit', '-q', '-m', subject);
}

const TESTS = { 'tests/test_crane.py': 'fails\n', 'tests/test_rope.py': 'passes\n' };

beforeEach(() => {
  folder = temporaryFolder('smith');
  git('init', '-q', '-b', 'main');
  commit('Initial commit', { 'crane.py': FIXED, ...TESTS });
});

const tree = (bug = BUG): SmithTree => ({ instanceId: ID, folder, bug, changed: ['crane.py'] });
const files = (...names: string[]) => testFilesOf('python', names);
const FAILING = files('tests/test_crane.py::test_lift');

const run = (script: string) => spawnSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' });
const runs = (script: string) => expect(run(script)).toMatchObject({ status: 0, stderr: '' });

/** Makes the branch of an instance as SWE-smith does. */
function makeBranch(removesTests: boolean): void {
  git('checkout', '-q', '-b', ID);
  commit('Bug Patch', { 'crane.py': BROKEN });
  if (removesTests) {
    git('rm', '-q', 'tests/test_crane.py');
    git('commit', '-q', '-m', 'Remove F2P Tests');
  }
  git('checkout', '-q', 'main');
}

describe('the start', () => {
  test.each([
    ['no branch of the instance', () => undefined],
    ['a branch that ends with its tests removed', () => makeBranch(true)],
    ['a branch that ends with the bug', () => makeBranch(false)],
    [
      'a remote branch',
      () => {
        makeBranch(true);
        git('update-ref', `refs/remotes/origin/${ID}`, ID);
        git('branch', '-q', '-D', ID);
      },
    ],
  ])('is the bug with all tests: %s', (_name, prepare) => {
    prepare();
    runs(startScript(tree()));
    expect(git('log', '-1', '--format=%s')).toBe('Bug Patch');
    expect(read('crane.py')).toBe(BROKEN);
    expect(git('ls-files')).toBe('crane.py\ntests/test_crane.py\ntests/test_rope.py');
    expect(git('status', '--porcelain')).toBe('');
  });

  test('accepts a patch that adds and removes files, also ignored ones', () => {
    commit('ignores', { '.gitignore': '*.dat\n', 'old.py': 'old\n' });
    const bug = `${BUG}diff --git a/new.dat b/new.dat
new file mode 100644
--- /dev/null
+++ b/new.dat
@@ -0,0 +1 @@
+new
diff --git a/old.py b/old.py
deleted file mode 100644
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-old
`;
    runs(startScript(tree(bug)));
    expect(git('ls-files')).toBe('.gitignore\ncrane.py\nnew.dat\ntests/test_crane.py\ntests/test_rope.py');
    expect(git('status', '--porcelain')).toBe('');
  });

  test('fails with the reason if the patch does not apply', () => {
    const result = run(startScript(tree(BUG.replaceAll('load', 'weight'))));
    expect(result.status).toBe(1);
    expect(result.stderr).toContain('the patch of the row does not make the bug on main');
    expect(read('crane.py')).toBe(FIXED);
  });

  test('fails if the image has neither main nor the branch', () => {
    git('checkout', '-q', '-b', 'other');
    git('branch', '-q', '-D', 'main');
    expect(run(startScript(tree()))).toMatchObject({
      status: 1,
      stderr: `the image has neither the branch ${ID} nor main\n`,
    });
  });
});

describe('the agent', () => {
  test.each([true, false])(
    'has no tests that the bug fails, whether or not the branch removes them',
    (removes) => {
      makeBranch(removes);
      runs(startScript(tree()));
      runs(hideScript(tree(), FAILING));
      expect(existsSync(at('tests/test_crane.py'))).toBe(false);
      expect(existsSync(at('tests/test_rope.py'))).toBe(true);
    },
  );

  test('does not have the files that the branch removed', () => {
    makeBranch(true);
    runs(startScript(tree()));
    runs(hideScript(tree(), files()));
    expect(existsSync(at('tests/test_crane.py'))).toBe(false);
  });

  test('has the code with the bug and no compiled Python', () => {
    write({ 'tests/__pycache__/test_crane.cpython-311.pyc': '', '__pycache__/crane.cpython-311.pyc': '' });
    runs(startScript(tree()));
    runs(hideScript(tree(), files('crane.py::crane.lift', 'gone.py::a', 'tests::b')));
    expect(read('crane.py')).toBe(BROKEN);
    expect(existsSync(at('__pycache__'))).toBe(false);
    expect(existsSync(at('tests/__pycache__'))).toBe(false);
    expect(existsSync(at('tests/test_crane.py'))).toBe(true);
  });
});

test('only the files of the tests are restored from the start commit', () => {
  runs(startScript(tree()));
  write({ 'tests/test_crane.py': 'True\n', 'crane.py': 'mended\n', 'tests/more.py': 'mine\n' });
  rmSync(at('tests/test_rope.py'));
  runs(
    restoreScript(tree(), files('tests/test_crane.py::a', 'tests/test_rope.py::b', 'crane.py::c', 'WARNING')),
  );
  expect(read('tests/test_crane.py')).toBe('fails\n');
  expect(read('tests/test_rope.py')).toBe('passes\n');
  expect(read('crane.py')).toBe('mended\n');
  expect(read('tests/more.py')).toBe('mine\n');
});

test('a patch that creates a hidden test applies, and the test is restored', () => {
  makeBranch(true);
  runs(startScript(tree()));
  const made = (path: string): string =>
    `diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+mine\n`;
  const mend = BUG.replace(
    '-    return load <= 9\n+    return load < 9',
    '-    return load < 9\n+    return load <= 9',
  );
  const path = join(folder, '.git/model.diff');
  writeFileSync(path, mend + made('tests/test_crane.py'));
  runs(roomScript(tree(), FAILING, path));
  git('apply', '.git/model.diff');
  expect([read('crane.py'), read('tests/test_crane.py')]).toEqual([FIXED, 'mine\n']);
  runs(restoreScript(tree(), FAILING));
  expect(read('tests/test_crane.py')).toBe('fails\n');
  // As in the harness, a visible test prevents the patch.
  writeFileSync(path, made('tests/test_rope.py'));
  runs(roomScript(tree(), FAILING, path));
  expect(read('tests/test_rope.py')).toBe('passes\n');
});

describe('tests are found by their names', () => {
  const hidden = (rule: Parameters<typeof testFilesOf>[0], names: string[]): string[] => {
    const before = git('ls-files').split('\n');
    runs(hideScript(tree(), testFilesOf(rule, names)));
    return before.filter((path) => !existsSync(at(path)));
  };

  test('Go: by functions in test files', () => {
    commit('go', {
      'crane_test.go':
        'package crane\n\nfunc TestLift(t *testing.T) {}\nfunc BenchmarkLift(b *testing.B) {}\n',
      'rope/rope_test.go': 'package rope\n\tfunc TestRope(t *testing.T) {}\nfunc (s *Suite) TestOther() {}\n',
      'crane.go': 'package crane\nfunc TestLift() {}\n',
      'other_test.go': 'package crane\nfunc TestLifting(t *testing.T) {}\n',
    });
    expect(hidden('go', ['TestLift', 'TestRope/knots', 'TestOther', 'example.org/crane'])).toEqual([
      'crane_test.go',
    ]);
  });

  test('Java: by classes', () => {
    commit('java', {
      'src/test/java/org/example/CraneTest.java': 'class CraneTest {}\n',
      'core/test/CraneTest.java': 'class CraneTest {}\n',
      'src/test/java/org/example/RopeTest.java': '',
      'src/main/java/org/example/Crane.java': '',
    });
    expect(hidden('java', ['org.example.CraneTest$Heavy.lifts(int)[1]', 'nothing.here'])).toEqual([
      'core/test/CraneTest.java',
      'src/test/java/org/example/CraneTest.java',
    ]);
  });

  test('JavaScript: by titles of calls, or by paths', () => {
    commit('javascript', {
      'test/crane.js': "describe('crane', () => {\n  it('lifts \\'it\\'', () => {});\n});\n",
      'src/rope.test.ts': 'test.only("pulls (hard)", () => {});\n',
      'src/hook.spec.mjs': 'it(\n  `holds`,\n  async () => {});',
      'test/empty.js': '',
      'test/other.js': "commit('holds'); submit.it('holds')\n// it('lifts')\n",
      'src/lib.js': "it('holds', () => {})\n",
      'node_modules/x/test/a.js': "it('holds', () => {})\n",
      'suites/all.js': '',
    });
    expect(hidden('javascript', ["lifts 'it'", 'pulls (hard)', 'holds', 'suites/all.js'])).toEqual([
      'src/hook.spec.mjs',
      'src/rope.test.ts',
      'suites/all.js',
      'test/crane.js',
    ]);
  });

  test('PHP: by namespace and class', () => {
    commit('php', {
      'tests/CraneTest.php':
        '<?php\n\nnamespace Pier\\Tests;\n\nfinal class CraneTest extends TestCase\n{\n}\n',
      'tests/Other/CraneTest.php': '<?php\nnamespace Pier\\Other;\nclass CraneTest {}\n',
      'src/Crane.php': '<?php\nnamespace Pier\\Tests;\nclass CraneTest {}\n',
    });
    expect(hidden('php', ['Pier\\Tests\\CraneTest::Lifts a load'])).toEqual(['tests/CraneTest.php']);
  });

  test('Rust: no test is hidden; only separate test files are restored', () => {
    const library = '#[test]\nfn lifts() {}\n';
    commit('rust', { 'src/lib.rs': library, 'tests/crane.rs': library, 'src/rope/tests.rs': library });
    expect(hidden('rust', ['tests::lifts', 'src/lib.rs - Crane (line 3)'])).toEqual([]);
    write({ 'src/lib.rs': 'mended', 'tests/crane.rs': '', 'src/rope/tests.rs': '' });
    runs(restoreScript(tree(), testFilesOf('rust', ['tests::lifts'])));
    expect([read('src/lib.rs'), read('tests/crane.rs'), read('src/rope/tests.rs')]).toEqual([
      'mended',
      library,
      library,
    ]);
  });
});

test('hostile names of tests and files are harmless', () => {
  runs(startScript(tree()));
  const names = [
    "'; touch owned; '",
    '$(touch owned)',
    '-rf',
    '--',
    '../../etc/passwd',
    '*',
    'a\nb',
    'tests/*',
  ];
  for (const rule of ['python', 'go', 'java', 'javascript', 'php'] as const) {
    runs(hideScript(tree(), testFilesOf(rule, names)));
    runs(restoreScript(tree(), testFilesOf(rule, names)));
  }
  expect(existsSync(at('owned'))).toBe(false);
  expect(git('status', '--porcelain')).toBe('');
});
