import { describe, expect, test } from 'vitest';
import { fromTable, instance, replaces } from '../instance.fixture.ts';
import { patchFindings } from './patchfiles.ts';
import { runnersOf } from './runners.ts';
import { withoutTestHooks } from './withouthooks.ts';

const changes = (path: string, line = 'y'): string => replaces(path, 'x', line);
const ofTable = (repo: string, version: string, more = {}) =>
  fromTable({ repo, version, patch: '', ...more });
const DJANGO = ofTable('django/django', '4.1');
const SYMPY = ofTable('sympy/sympy', '1.9');

describe('the files that run the tests', () => {
  test.each([
    ['django', DJANGO, 'tests/runtests.py'],
    ['django, its settings', DJANGO, 'tests/test_sqlite.py'],
    ['django, behind it', DJANGO, 'django/test/runner.py'],
    ['sympy', SYMPY, 'bin/test'],
    ['sympy, behind it', SYMPY, 'sympy/testing/runtests.py'],
    [
      'a command of the row',
      instance({ test_cmd: ['cd x', 'python tools/check.py --config=unit.json'] }),
      'tools/check.py',
    ],
    ['its configuration', instance({ test_cmd: 'python tools/check.py --config=unit.json' }), 'unit.json'],
    ['behind variables', instance({ test_cmd: "MODE='x y' ONE=1 ./run-tests.py -d thread" }), 'run-tests.py'],
    ['a wrapper', instance({ test_cmd: './gradlew test --tests A' }), 'gradlew'],
    ["a tool's configuration", instance({ test_cmd: 'npx karma start --single-run' }), 'karma.conf.js'],
    [
      'a script of the row',
      instance({
        eval_script: "cd /testbed\n: '>>>>> Start Test Output'\n./run.sh a\n: '>>>>> End Test Output'\ngit x",
      }),
      'run.sh',
    ],
  ])('%s: %#', (_name, row, path) => {
    expect(runnersOf(row)(path)).toBe(true);
    expect(patchFindings(changes(path), row)).toEqual([
      { level: 'suspicious', reason: `the patch changes the program that runs the tests: ${path}` },
    ]);
    const fix = changes('src/a.py');
    expect(withoutTestHooks(fix + changes(path), row)).toEqual({ patch: fix, files: [path] });
  });

  test.each([
    ['what is tested', DJANGO, 'django/db/models/query.py'],
    ['a test', DJANGO, 'tests/queries/tests.py'],
    ['a part of a name', DJANGO, 'runtests.py'],
    ['what a command is about', instance({ test_cmd: 'test -e fix.txt && pytest src/a.py' }), 'fix.txt'],
    ['a tool of the machine', instance({ test_cmd: 'tox -e py' }), 'tox'],
    [
      'what the test patch puts back',
      instance({ test_cmd: 'python tests/test_lid.py' }),
      'tests/test_lid.py',
    ],
    ["another tool's configuration", instance({ test_cmd: 'npx karma start' }), 'jest.config.js'],
    [
      'before and after the tests',
      instance({
        eval_script: "./pre.sh\n: '>>>>> Start Test Output'\nx\n: '>>>>> End Test Output'\n./post.sh",
      }),
      'post.sh',
    ],
    ['no command is known', ofTable('no/body', '1'), 'tests/runtests.py'],
  ])('is not %s: %#', (_name, row, path) => {
    expect(runnersOf(row)(path)).toBe(false);
    expect(patchFindings(changes(path), row)).toEqual([]);
  });

  test('a file that gold changes does not count', () => {
    const mended = ofTable('django/django', '4.1', { patch: changes('django/test/utils.py') });
    expect(
      patchFindings(changes('django/test/utils.py') + changes('django/test/testcases.py'), mended),
    ).toEqual([]);
    expect(withoutTestHooks(changes('django/test/testcases.py'), mended)).toBeNull();
    expect(patchFindings(changes('tests/runtests.py'), mended)).toHaveLength(1);
  });
});
