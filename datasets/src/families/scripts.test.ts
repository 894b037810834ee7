/** Runs the scripts of the families' plans by a real bash, without an image. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Instance } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { FAMILY_ROWS, writeProFiles } from '../../test/familyrows.ts';
import { toInstance } from '../row.ts';

let folder: string;
beforeEach(async () => {
  folder = temporaryFolder('scripts');
  await writeProFiles(folder);
});

function read(name: string, over: Record<string, unknown> = {}): Instance {
  const found = toInstance('line 1', { ...FAMILY_ROWS[name], ...over }, { familyFiles: folder });
  if ('problems' in found) throw new Error(JSON.stringify(found.problems));
  return found.instance;
}

/** A repository with the file that the rows' patches change. */
function repository(): string {
  const path = join(folder, 'calc');
  execFileSync('git', ['init', '-q', path]);
  execFileSync('mkdir', ['-p', join(path, 'tests')]);
  writeFileSync(join(path, 'calc.py'), 'def add(a, b):\n    return a - b\n');
  writeFileSync(join(path, 'tests/test_calc.py'), 'from calc import add\n\n');
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', path, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args]);
  git('add', '.');
  git('commit', '-qm', 'start');
  return path;
}

const bash = (script: string, cwd = folder) =>
  spawnSync('/bin/bash', ['-c', script], { cwd, encoding: 'utf8' });

test.each(Object.keys(FAMILY_ROWS))('scripts and steps of %s are valid bash', (name) => {
  const { plan, environment } = read(name);
  const steps = [...(environment?.setup ?? []), ...(plan?.before ?? []), ...(plan?.after ?? [])];
  for (const text of [plan?.script ?? '', ...steps.map(({ script }) => script)]) {
    const { status, stderr } = spawnSync('/bin/bash', ['-n'], { input: text, encoding: 'utf8' });
    expect({ status, stderr }, text).toEqual({ status: 0, stderr: '' });
  }
});

test('a script contains the texts of a row unchanged', () => {
  const nasty = '$(touch owned) `id` \'EOF\' "x" \\ \nEOF_0\n';
  const { plan } = read('scale-swe', { f2p_patch: '', f2p_script: nasty, workdir: repository() });
  const script = plan?.script.split('\ncat >/tmp')[0] ?? '';
  expect(bash(script).stderr).toBe('');
  expect(readFileSync(join(folder, 'calc/test_fail_to_pass.py'), 'utf8')).toBe(nasty);
});

test('SWE-rebench V2: the first failing command ends the script; stdout precedes stderr', () => {
  const path = repository();
  const commands = ['echo before; echo aside >&2', 'false', 'echo never'];
  const row = FAMILY_ROWS['swe-rebench-v2'];
  const config = { ...(row?.install_config as Record<string, unknown>), test_cmd: commands };
  const script = read('swe-rebench-v2', { install_config: config }).plan?.script.replaceAll(
    "'/calc'",
    `'${path}'`,
  );
  const { status, stdout } = bash(script ?? '');
  expect(status).toBe(1);
  expect(stdout).toMatch(/^before\n[\s\S]*Applied patch[\s\S]*aside\n$/);
  expect(readFileSync(join(path, 'tests/test_calc.py'), 'utf8')).toContain('def test_add');
});

const NEW_TESTS = `diff --git a/tests/test_new.py b/tests/test_new.py
new file mode 100644
--- /dev/null
+++ b/tests/test_new.py
@@ -0,0 +1 @@
+from calc import add
`;

test("SWE-Lego: the test patch applies over a file that the agent created at a test's path", () => {
  const path = repository();
  const base = execFileSync('git', ['-C', path, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const { test_patch } = FAMILY_ROWS['swe-lego'] ?? {};
  const script = read('swe-lego', {
    base_commit: base,
    test_patch: `${String(test_patch)}${NEW_TESTS}`,
    test_cmd: 'cat tests/*.py',
  }).plan?.script;
  writeFileSync(join(path, 'tests/test_new.py'), 'def test_of_the_agent(): ...\n');
  writeFileSync(join(path, 'tests/test_calc.py'), 'raise SystemExit\n');
  const here = (script ?? '')
    .replaceAll('/testbed', path)
    .replaceAll('/tmp/test_patch.patch', join(folder, 'test_patch.patch'))
    .replace(/^(source|conda) .*$/gm, '');
  const { stdout } = bash(here);
  expect(stdout).toContain('def test_add');
  expect(stdout).not.toMatch(/of_the_agent|SystemExit/);
});

test('Scale-SWE: a shifted test patch is applied with the attempts for model patches', () => {
  const path = repository();
  const moved = String(FAMILY_ROWS['scale-swe']?.f2p_patch).replaceAll(
    'from calc import add',
    'from  calc import add',
  );
  const { plan } = read('scale-swe', { f2p_patch: moved, workdir: path });
  const applied = (plan?.script ?? '').split('\ncat >/tmp/_awe_expected')[0] ?? '';
  const { status, stderr } = bash(applied.replaceAll('/tmp/_awe_f2p.patch', join(folder, 'f2p.patch')));
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(readFileSync(join(path, 'tests/test_calc.py'), 'utf8')).toContain('def test_add');
  const foreign = read('scale-swe', { f2p_patch: NEW_TESTS.replace('+from', '-from'), workdir: path });
  const broken = (foreign.plan?.script ?? '').split('\ncat >/tmp/_awe_expected')[0] ?? '';
  expect(bash(broken.replaceAll('/tmp/_awe_f2p.patch', join(folder, 'f2p.patch'))).status).toBe(1);
});

const BINARY = `diff --git a/a.png b/a.png
new file mode 100644
index 0000000..1111111
GIT binary patch
literal 0
HcmV?d00001

diff --git a/b.png b/b.png
index 1111111..2222222 100644
Binary files a/b.png and b/b.png differ
`;

test('SWE-bench Pro: a patch is applied in one attempt, without binary files', () => {
  const path = repository();
  const { plan, patch } = read('swe-bench-pro');
  writeFileSync(join(folder, 'given.diff'), BINARY + patch + BINARY);
  const argv = (plan?.apply[0]?.argv ?? []).map((word) =>
    word.replaceAll('/workspace', folder).replaceAll('/tmp/patch.diff', join(folder, 'given.diff')),
  );
  const { status, stderr } = spawnSync(argv[0] ?? '', argv.slice(1), { cwd: path, encoding: 'utf8' });
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(readFileSync(join(path, 'calc.py'), 'utf8')).toContain('a + b');
  expect(readFileSync(join(folder, 'patch.diff'), 'utf8')).toBe(patch);
});

test('SWE-bench Pro: the script gets the files as one argument; both outputs are stored', () => {
  const { plan } = read('swe-bench-pro');
  const script = (plan?.script ?? '')
    .replaceAll('/workspace', folder)
    .replaceAll('cd /app', `cd ${folder}`)
    .replace('pytest -v', 'echo "$PYTEST_ADDOPTS $LANG $UV_HTTP_TIMEOUT" >&2; echo');
  bash(script);
  expect(readFileSync(join(folder, 'stdout.log'), 'utf8')).toBe('tests/test_calc.py tests/test_more.py\n');
  expect(readFileSync(join(folder, 'stderr.log'), 'utf8')).toBe('--tb=short -v en_US.UTF-8 60\n');
});

test('SWE-bench-Live: one shell runs all unescaped commands; print commands make the log', () => {
  const path = repository();
  const script = read('swe-bench-live', {
    rebuild_cmds: ['cd sub &amp;&amp; export BUILT=yes'],
    test_cmds: ['echo "$BUILT $PWD" &gt; ../report.txt &amp;&amp; true', 'echo loud'],
    print_cmds: ['cat ../report.txt'],
  }).plan?.script;
  execFileSync('mkdir', [join(path, 'sub')]);
  const here = (script ?? '')
    .replaceAll('/testbed', path)
    .replaceAll('/tmp/swefarm-tests.log', join(folder, 'tests.log'));
  expect(bash(here).stdout).toBe(`yes ${path}/sub\n`);
  expect(readFileSync(join(folder, 'tests.log'), 'utf8')).toContain('loud');
});

test('R2E-Gym: the hidden tests are moved and linked; an image without them fails', () => {
  const setup = read('r2e-gym').environment?.setup.at(-1);
  expect(setup).toMatchObject({ may_fail: false, roles: ['evaluation'] });
  const text = (setup?.script ?? '').replaceAll(/\/(root|testbed|r2e_tests)\b/g, (path) => folder + path);
  const script = text
    .replaceAll(`${folder}/root${folder}/r2e_tests`, `${folder}/root/r2e_tests`)
    .replaceAll(`${folder}/testbed${folder}/r2e_tests`, `${folder}/testbed/r2e_tests`);
  execFileSync('mkdir', ['-p', ...['root', 'testbed'].map((name) => join(folder, name))]);
  expect(bash(script).status).not.toBe(0);
  execFileSync('mkdir', [join(folder, 'r2e_tests')]);
  writeFileSync(join(folder, 'r2e_tests/test_1.py'), '');
  writeFileSync(join(folder, 'testbed/run_tests.sh'), 'pytest r2e_tests\n');
  execFileSync('rm', ['-f', join(folder, 'testbed/r2e_tests')]);
  expect(bash(script).status).toBe(0);
  expect(bash('ls -L testbed/r2e_tests root').stdout).toMatch(/run_tests\.sh[\s\S]*test_1\.py/);
});

/** Runs Multi-SWE's check in a repository; another folder replaces `/home` of the image. */
function clashes(test: string, fix: string, extra = ''): number | null {
  const { plan } = read('multi-swe');
  const path = repository();
  if (extra !== '') writeFileSync(join(path, 'calc.py'), extra);
  writeFileSync(
    join(folder, 'fix-run.sh'),
    `cd ${path}\ngit apply --whitespace=nowarn ${folder}/test.patch ${folder}/fix.patch\nmake test\n`,
  );
  writeFileSync(join(folder, 'test.patch'), test);
  writeFileSync(join(folder, 'fix.patch'), fix);
  const before = bash('git status --porcelain; git write-tree', path).stdout;
  const script = plan?.apply[0]?.argv
    .at(-1)
    ?.replaceAll('/home/', `${folder}/`)
    .replace('/home/fix[.]patch', `${folder}/fix[.]patch`);
  const { status } = bash(script ?? 'exit 99', path);
  expect(bash('git status --porcelain; git write-tree', path).stdout).toBe(before);
  return status;
}

const added = (name: string, line: string): string =>
  `diff --git a/${name} b/${name}\nnew file mode 100644\n--- /dev/null\n+++ b/${name}\n@@ -0,0 +1 @@\n+${line}\n`;
const appended = (line: string): string =>
  `diff --git a/tests/test_calc.py b/tests/test_calc.py\n--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n@@ -1,2 +1,3 @@\n from calc import add\n \n+${line}\n`;
const changed = (from: string, to: string): string =>
  `diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    ${from}\n+    ${to}\n`;

test.each([
  ['both add one file', added('tests/new.py', 'a = 1'), added('tests/new.py', 'b = 1')],
  ['both append to one file', appended('a = 1'), appended('b = 1')],
])('Multi-SWE: a patch that conflicts with the tests does not apply: %s', (_name, tests, fix) => {
  expect(clashes(tests, fix)).toBe(1);
});

test('Multi-SWE: a patch without conflict applies; the check does not change the repository', () => {
  expect(clashes(added('tests/new.py', 'a = 1'), changed('return a - b', 'return a + b'))).toBe(0);
});

test('Multi-SWE: the check sees uncommitted changes of the image', () => {
  const start = 'def add(a, b):\n    return 0\n';
  expect(clashes(added('tests/new.py', 'a = 1'), changed('return 0', 'return a + b'), start)).toBe(0);
});

test('SWE-rebench V2: the agent works on the tree that its patch is applied to', () => {
  const { environment, plan } = read('swe-rebench-v2');
  expect(environment?.setup).toMatchObject([
    { script: 'git reset --hard HEAD', roles: ['agent', 'evaluation'] },
  ]);
  expect(plan?.before).toEqual([]);
});
