/** Finds in a test patch the tests that an eval script runs, as each harness does. */
import type { Instance } from '@swefarm/shared';
import { py } from '../text/pattern.ts';

/** Suffixes of files that the harness does not pass to the test command. The harness writes `csv` without a dot. */
const NOT_TESTS = ['.json', '.png', 'csv', '.txt', '.md', '.jpg', '.jpeg', '.pkl', '.yml', '.yaml', '.toml'];

/** Returns the files of all `diff --git` lines except data files. Files of Django become module names. */
export function testDirectives(instance: Pick<Instance, 'repo' | 'test_patch'>): string[] {
  const files = allIn(instance.test_patch, PATCHED_FILE).filter(
    (file) => !NOT_TESTS.some((ending) => file.endsWith(ending)),
  );
  return instance.repo === 'django/django' ? files.map(djangoModule) : files;
}

const PATCHED_FILE = new RegExp(py`diff --git a/.* b/(.*)`, 'gu');
const RESET_FILE = new RegExp(py`--- a/(.*)`, 'gu');
const CASE = new RegExp(py`\[case ([^\]]+)\]`, 'gu');

const allIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found);

const djangoModule = (file: string): string =>
  file
    .replace(/\.py$/, '')
    .replace(/^tests\//, '')
    .replaceAll('/', '.');

/** Returns an expression for pytest's `-k` with the names of mypy's tests, which are `[case NAME]` in data files. */
export const mypyCases = (testPatch: string): string => allIn(testPatch, CASE).join(' or ');

/** Returns the files that SWE-Gym's fork of the harness resets: the text after every `--- a/`. */
export const forkResetFiles = (testPatch: string): string[] => allIn(testPatch, RESET_FILE);
