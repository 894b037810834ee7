/** Finds in a test patch the tests that an eval script runs, as each harness does. */
import type { Instance } from '@swefarm/shared';
import { linesOf } from '../text/pythontext.ts';

/** Suffixes of files that the harness does not pass to the test command. The harness writes `csv` without a dot. */
const NOT_TESTS = ['.json', '.png', 'csv', '.txt', '.md', '.jpg', '.jpeg', '.pkl', '.yml', '.yaml', '.toml'];

/** Returns the files of all `diff --git` lines except data files. Files of Django become module names. */
export function testDirectives(instance: Pick<Instance, 'repo' | 'test_patch'>): string[] {
  const files = patchedFiles(instance.test_patch).filter(
    (file) => !NOT_TESTS.some((ending) => file.endsWith(ending)),
  );
  return instance.repo === 'django/django' ? files.map(djangoModule) : files;
}

function patchedFiles(patch: string): string[] {
  const found: string[] = [];
  for (const line of linesOf(patch)) {
    const open = line.indexOf('diff --git a/');
    const divide = line.lastIndexOf(' b/');
    if (open >= 0 && divide >= open + 'diff --git a/'.length) found.push(line.slice(divide + 3));
  }
  return found;
}

const djangoModule = (file: string): string =>
  file
    .replace(/\.py$/, '')
    .replace(/^tests\//, '')
    .replaceAll('/', '.');

/** Returns an expression for pytest's `-k` with the names of mypy's tests, which are `[case NAME]` in data files. */
export function mypyCases(testPatch: string): string {
  const names: string[] = [];
  let open = testPatch.indexOf(CASE);
  while (open >= 0) {
    const close = testPatch.indexOf(']', open);
    if (close < 0) break;
    if (close > open + CASE.length) names.push(testPatch.slice(open + CASE.length, close));
    open = testPatch.indexOf(CASE, close);
  }
  return names.join(' or ');
}

const CASE = '[case ';

/** Returns the files that SWE-Gym's fork of the harness resets: the text after every `--- a/`. */
export function forkResetFiles(testPatch: string): string[] {
  const found: string[] = [];
  for (const line of linesOf(testPatch)) {
    const at = line.indexOf('--- a/');
    if (at >= 0) found.push(line.slice(at + '--- a/'.length));
  }
  return found;
}
