/** Finds the files of tests by the names of the tests. `datasets/src/families/smith/` searches the tree for names without a path. */
import type { TestFilesRule } from './projects.ts';

/** Files of tests, or names by which a search of the repository finds the files. */
export type TestFiles =
  | { rule: 'files'; files: string[] }
  | { rule: 'go' | 'java' | 'javascript' | 'php' | 'rust'; names: string[] };

/** Applies SWE-smith's rule of the project to names of tests. The result is sorted and has no duplicates. */
export function testFilesOf(rule: TestFilesRule, tests: readonly string[]): TestFiles {
  switch (rule) {
    case 'none':
      return { rule: 'files', files: [] };
    case 'python':
    case 'python-mido':
      return { rule: 'files', files: sorted(tests.map((test) => pythonFile(test, rule))) };
    case 'python-slugify':
      return { rule: 'files', files: ['test.py'] };
    case 'python-tornado':
      return { rule: 'files', files: sorted(tests.flatMap(tornadoFile)) };
    default:
      return { rule, names: sorted(tests.flatMap(SEARCHED[rule])) };
  }
}

const sorted = (names: readonly string[]): string[] =>
  [...new Set(names)].filter((name) => name !== '').sort();

const DEV = '../dev/';

function pythonFile(test: string, rule: TestFilesRule): string {
  const file = test.split('::', 1)[0] ?? '';
  return rule === 'python-mido' && file.startsWith(DEV) ? file.slice(DEV.length) : file;
}

/** Returns `tornado/test/http_test.py` for `test_get (tornado.test.http_test.GetTest)`. */
function tornadoFile(test: string): string[] {
  const module = /\(([^()]+)\)/.exec(test)?.[1]?.split('.').slice(0, -1) ?? [];
  return module.length === 0 ? [] : [`${module.join('/')}.py`];
}

const SEARCHED: Record<'go' | 'java' | 'javascript' | 'php' | 'rust', (test: string) => string[]> = {
  // The name of a subtest (`TestA/case`) is not the name of a function.
  go: (test) => (/^[\p{L}\p{N}_]+$/u.test(test) ? [test] : []),
  java: javaClass,
  javascript: (test) => [test],
  php: (test) => (test.includes('::') ? [test.slice(0, test.indexOf('::'))] : []),
  rust: (test) => [rustFunction(test)],
};

/** Returns `QueueTest` for `org.example.QueueTest$Inner.adds(int)[1]`: the last part that begins in upper case. */
function javaClass(test: string): string[] {
  const parts = test.split(/[([\s]/, 1)[0]?.split('.') ?? [];
  const name = parts.findLast((part) => /^\p{Lu}/u.test(part))?.split('$', 1)[0];
  return name === undefined ? [] : [name];
}

/** Returns the name of the test function; '' for a doc test (`src/lib.rs - Heap (line 12)`), which has no function. */
const rustFunction = (test: string): string =>
  / \(line \d+\)/.test(test) ? '' : (test.replace(' - should panic', '').split('::').at(-1) ?? '');
