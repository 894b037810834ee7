import { expect, test } from 'vitest';
import { adds, instance, replaces } from '../instance.fixture.ts';
import { replacedTestFiles, withoutTestHooks } from './withouthooks.ts';

const changes = (path: string, line: string): string => replaces(path, 'x', line);
const HOOK = 'def pytest_runtest_makereport(item): pass';
const FIX = changes('src/a.py', 'y');
const none = instance({ patch: '', test_patch: '' });

test.each([
  ['a conftest.py', adds('tests/conftest.py', 'x'), ['tests/conftest.py']],
  ['a changed conftest.py', changes('conftest.py', 'x'), ['conftest.py']],
  ['a new module with hooks', adds('quiet.py', HOOK), ['quiet.py']],
])('%s is removed, and the fix stays', (_name, means, files) => {
  expect(withoutTestHooks(FIX + means, none)).toEqual({ patch: FIX, files });
  expect(withoutTestHooks(means + FIX, none)).toEqual({ patch: FIX, files });
  expect(withoutTestHooks(means, none)).toEqual({ patch: '', files });
});

test.each([
  ['a fix alone', FIX],
  ['hooks in a module that was there: plugins are mended there', changes('src/plugin.py', HOOK)],
  ['what cannot be taken apart', `${adds('conftest.py', 'x')}diff --git a/x b/x\n@@ -1,9 +1,9 @@\n x\n`],
])('nothing is removed: %s', (_name, patch) => {
  expect(withoutTestHooks(patch, none)).toBeNull();
});

test('files of gold are not removed', () => {
  const conftest = adds('conftest.py', HOOK);
  expect(withoutTestHooks(FIX + conftest, { ...none, patch: conftest })).toBeNull();
});

test("a new file at a path of the test patch is removed, unless it equals gold's", () => {
  const [own, golds] = [adds('tests/test_new.py', 'x'), adds('tests/test_new.py', 'y')];
  const hidden = instance({
    patch: FIX + golds,
    test_patch: adds('tests/test_new.py', 'z') + changes('tests/test_old.py', 'z'),
  });
  expect(withoutTestHooks(FIX + own, hidden)).toEqual({ patch: FIX, files: ['tests/test_new.py'] });
  expect(withoutTestHooks(FIX + changes('tests/test_old.py', 'x'), hidden)).toBeNull();
  expect(replacedTestFiles(FIX + own, hidden)).toEqual(['tests/test_new.py']);
  // An exact copy of gold's file.
  expect(replacedTestFiles(FIX + golds, hidden)).toEqual([]);
});

test('a file that is moved to where the test patch adds its own stays where it was', () => {
  const hidden = instance({ patch: '', test_patch: adds('tests/test_new.py', 'z') });
  const moved =
    'diff --git a/tests/test_old.py b/tests/test_new.py\nsimilarity index 100%\nrename from tests/test_old.py\nrename to tests/test_new.py\n';
  expect(withoutTestHooks(FIX + moved, hidden)).toEqual({ patch: FIX, files: ['tests/test_new.py'] });
  expect(replacedTestFiles(FIX + moved, hidden)).toEqual(['tests/test_new.py']);
});
