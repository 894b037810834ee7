/** Finds the files of tests by the names of the tests; other files are searched in the container (`datasets/src/families/smith/`). */
import type { TestFilesRule } from './projects.ts';

/** The files, or the names that a search of the tree needs. */
export type TestFiles =
  | { rule: 'files'; files: string[] }
  | { rule: 'go' | 'java' | 'javascript' | 'php' | 'rust'; names: string[] };

/** Returns the files of tests by SWE-smith's rule for their project, sorted, without duplicates. */
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

/** `test_get (tornado.test.http_test.GetTest)` → `tornado/test/http_test.py`. */
function tornadoFile(test: string): string[] {
  const module = /\(([^()]+)\)/.exec(test)?.[1]?.split('.').slice(0, -1) ?? [];
  return module.length === 0 ? [] : [`${module.join('/')}.py`];
}

const SEARCHED: Record<'go' | 'java' | 'javascript' | 'php' | 'rust', (test: string) => string[]> = {
  // A subtest has no function of its own.
  go: (test) => (/^[\p{L}\p{N}_]+$/u.test(test) ? [test] : []),
  java: javaClass,
  javascript: (test) => [test],
  php: (test) => (test.includes('::') ? [test.slice(0, test.indexOf('::'))] : []),
  rust: (test) => [rustFunction(test)],
};

/** `org.example.QueueTest$Inner.adds(int)[1]` → `QueueTest`: the last part that begins in upper case. */
function javaClass(test: string): string[] {
  const parts = test.split(/[([\s]/, 1)[0]?.split('.') ?? [];
  const name = parts.findLast((part) => /^\p{Lu}/u.test(part))?.split('$', 1)[0];
  return name === undefined ? [] : [name];
}

/** The name of the function; '' for a doc test (`src/lib.rs - Heap (line 12)`), which has none. */
const rustFunction = (test: string): string =>
  / \(line \d+\)/.test(test) ? '' : (test.replace(' - should panic', '').split('::').at(-1) ?? '');
