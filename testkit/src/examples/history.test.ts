import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporaryfolder.ts';
import { writeTree } from '../repository.ts';
import { makeRepository } from './history.ts';
import { Recipe } from './recipe.ts';

const { signal } = new AbortController();
let dir: string;
let archives: { broken: string; fixed: string };

const release = (sum: string, greeting: string, version: string) => ({
  'setup.cfg': `[metadata]\nversion = ${version}\n`,
  'calc.py': `VERSION = '${version}'\n\n\ndef add(a, b):\n    return a ${sum} b\n\n\ndef greet():\n    return '${greeting}'\n`,
  'tests/test_calc.py': 'from calc import add\n',
  'calc.egg-info/PKG-INFO': 'litter\n',
});

async function pack(name: string, files: Record<string, string>): Promise<string> {
  await writeTree(join(dir, name), files);
  execFileSync('tar', ['-czf', `${name}.tar.gz`, name], { cwd: dir });
  return join(dir, `${name}.tar.gz`);
}

beforeAll(async () => {
  dir = temporaryFolder('history');
  const fixed = {
    ...release('+', 'Hello', '1.1'),
    'tests/test_calc.py': 'from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n',
    'tests/data.txt': 'new\n',
  };
  archives = {
    broken: await pack('calc-1.0', release('-', 'hello', '1.0')),
    fixed: await pack('calc-1.1', fixed),
  };
});

const recipe = (over: Record<string, unknown> = {}): Recipe =>
  Recipe.parse({
    instance_id: 'a__calc-1.1',
    repo: 'a/calc',
    package: 'calc',
    broken: { version: '1.0', sdist_sha256: '0'.repeat(64) },
    fixed: { version: '1.1', sdist_sha256: '0'.repeat(64) },
    created_at: '2024-01-01T00:00:00Z',
    patch: [{ file: 'calc.py', only_hunks: ['return a'] }],
    test_patch: [{ file: 'tests/test_calc.py' }, { file: 'tests/data.txt' }],
    builder_commit: ["sed -i 's/1.0/1.0+image/' setup.cfg"],
    dirty: ['echo notes > NOTES'],
    test_cmd: 'pytest -rA',
    log_parser: 'pytest',
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    ...over,
  });

const git = (repo: string, ...args: string[]) =>
  execFileSync('git', ['-C', repo, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

test('the same archives give the same commits for every builder', async () => {
  const one = await makeRepository(recipe(), archives, join(dir, 'one'), signal);
  process.env.GIT_AUTHOR_NAME = 'Somebody Else';
  try {
    const two = await makeRepository(recipe(), archives, join(dir, 'two'), signal);
    expect(two).toEqual(one);
  } finally {
    delete process.env.GIT_AUTHOR_NAME;
  }
  expect(git(join(dir, 'two'), 'rev-parse', 'HEAD')).toBe(git(join(dir, 'one'), 'rev-parse', 'HEAD'));
  // A fixed id, so that the test fails when a change of the builder changes commit ids.
  expect(one.base_commit).toBe('32a7685e3de9d5f5439864baf5416d78e8120bf8');
});

test("base_commit has the repository, HEAD the builder's edits", async () => {
  const repo = join(dir, 'shape');
  const { base_commit } = await makeRepository(recipe(), archives, repo, signal);
  expect(git(repo, 'rev-parse', 'HEAD~1')).toBe(base_commit);
  expect(git(repo, 'diff', '--stat', 'HEAD~1', 'HEAD')).toContain('setup.cfg');
  expect(git(repo, 'status', '--porcelain')).toBe('?? NOTES');
  expect(git(repo, 'ls-files').split('\n')).toEqual([
    '.gitignore',
    'calc.py',
    'setup.cfg',
    'tests/test_calc.py',
  ]);
  const objects = git(repo, 'cat-file', '--batch-all-objects', '--batch-check=%(objecttype) %(objectname)');
  for (const line of objects.split('\n').filter((entry) => entry.startsWith('blob'))) {
    expect(git(repo, 'cat-file', '-p', line.slice(5))).not.toMatch(/return a \+ b|test_add/);
  }
});

test('patches hold the named files and hunks only, new files included', async () => {
  const { patch, test_patch } = await makeRepository(recipe(), archives, join(dir, 'patches'), signal);
  expect(patch).toContain('-    return a - b\n+    return a + b\n');
  expect(patch).not.toMatch(/^[-+].*(VERSION|ello)/m);
  expect(test_patch).toContain('+++ b/tests/data.txt');
  const skipping = recipe({ patch: [{ file: 'calc.py', skip_hunks: ['VERSION', 'ello'] }] });
  expect((await makeRepository(skipping, archives, join(dir, 'skipping'), signal)).patch).toBe(patch);
});

test.each([
  [{ patch: [{ file: 'calc.py', only_hunks: ['nowhere'] }] }, /no hunk changes a line with "nowhere"/],
  [{ patch: [{ file: 'absent.py' }] }, /neither release has absent.py/],
  [{ patch: [{ file: 'calc.egg-info/PKG-INFO' }] }, /./],
  [{ builder_commit: ["sed -i 's/9/8/' setup.cfg"] }, /these edits changed nothing/],
])('a recipe that does not match its archives is refused: %j', async (over, message) => {
  const making = makeRepository(recipe(over), archives, join(dir, `bad-${Math.random()}`), signal);
  await expect(making).rejects.toThrow(message);
});
