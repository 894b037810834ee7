/** Small instances in compiled and interpreted languages, whose tests need only this machine's compilers, and broken versions of them. */
import { existsSync } from 'node:fs';
import { commitTree, headOf, writeTree } from '../repository.ts';

/** Contents of files by their paths in the tree. */
type Files = Readonly<Record<string, string>>;

export type Breakage = 'compile error' | 'import error' | 'endless loop';

export type Language = {
  /** Path at which Debian installs the compiler. */
  program: string;
  files: Files;
  gold: Files;
  broken: Readonly<Record<Breakage, Files>>;
  parser: string;
  test: string;
  /** Bash lines that write the hidden test and run it. */
  script: string[];
};

const python = (text: string): Files => ({ 'calc.py': text });
const go = (rest: string): Files => ({ 'calc.go': `package calc\n${rest}` });
const rust = (text: string): Files => ({ 'src/lib.rs': text });
const java = (text: string): Files => ({ 'Calc.java': text });

/** In compiled languages the hidden test calls what only the fix adds, so it does not compile on the untouched tree either. */
export const LANGUAGES = {
  Python: {
    program: '/usr/bin/python3',
    files: python('def add(a, b):\n    return a - b\n'),
    gold: python('def add(a, b):\n    return a + b\n'),
    broken: {
      'compile error': python('def add(a, b:\n    return a + b\n'),
      'import error': python('from absent import add\n'),
      'endless loop': python('while True: pass\n'),
    },
    parser: 'parse_log_pytest',
    test: 't.py::test_add',
    script: [
      `echo "from calc import add; print(('PASSED' if add(1, 2) == 3 else 'FAILED') + ' t.py::test_add')" > t.py`,
      'python3 t.py',
    ],
  },
  Go: {
    program: '/usr/lib/go/bin/go',
    files: { 'go.mod': 'module calc\n\ngo 1.19\n', ...go('') },
    gold: go('\nfunc Add(a, b int) int { return a + b }\n'),
    broken: {
      'compile error': go('\nfunc Add(a, b int) int { return a + c }\n'),
      'import error': go('\nimport "calc/absent"\n\nfunc Add(a, b int) int { return absent.Add(a, b) }\n'),
      'endless loop': go('\nfunc Add(a, b int) int {\n\tfor {\n\t}\n}\n'),
    },
    parser: 'gotest',
    test: 'TestAdd',
    script: [
      `printf 'package calc\\n\\nimport "testing"\\n\\nfunc TestAdd(t *testing.T) {\\n\\tif Add(1, 2) != 3 {\\n\\t\\tt.Fatal()\\n\\t}\\n}\\n' > calc_test.go`,
      'GOTOOLCHAIN=local GOFLAGS=-mod=mod go test -vet=off -v ./...',
    ],
  },
  Rust: {
    program: '/usr/bin/cargo',
    files: {
      'Cargo.toml': '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
      ...rust('// Nothing yet.\n'),
    },
    gold: rust('pub fn add(a: i32, b: i32) -> i32 { a + b }\n'),
    broken: {
      'compile error': rust('pub fn add(a: i32, b: i32) -> i32 { a + c }\n'),
      'import error': rust('pub use absent::add;\n'),
      'endless loop': rust('pub fn add(_: i32, _: i32) -> i32 { loop {} }\n'),
    },
    parser: 'cargo',
    test: 'adds',
    script: [
      'mkdir -p tests',
      `echo '#[test] fn adds() { assert_eq!(calc::add(1, 2), 3); }' > tests/t.rs`,
      'cargo test --offline',
    ],
  },
  Java: {
    program: '/usr/bin/javac',
    files: java('class Calc {}\n'),
    gold: java('class Calc { static int add(int a, int b) { return a + b; } }\n'),
    broken: {
      'compile error': java('class Calc { static int add(int a, int b) { return a + c; } }\n'),
      'import error': java('import absent.Sum;\nclass Calc extends Sum {}\n'),
      'endless loop': java('class Calc { static int add(int a, int b) { while (true) {} } }\n'),
    },
    parser: 'parse_log_pytest',
    test: 'T::adds',
    script: [
      `echo 'class T { public static void main(String[] a) { System.out.println((Calc.add(1, 2) == 3 ? "PASSED" : "FAILED") + " T::adds"); } }' > T.java`,
      'javac Calc.java T.java && java -cp . T',
    ],
  },
} satisfies Record<string, Language>;

/** Why instances of a language cannot be evaluated on this machine; null when they can. */
export const compilerMissing = ({ program }: Language): string | null =>
  existsSync(program) ? null : `there is no ${program}: bash testkit/setup/setup.sh golang compilers`;

export const markedScript = (lines: readonly string[]): string =>
  [
    ...['#!/bin/bash', 'set -x', 'cd /testbed', 'export PATH=/usr/lib/go/bin:/usr/bin:/bin'],
    ...[": '>>>>> Start Test Output'", ...lines, ": '>>>>> End Test Output'", ''],
  ].join('\n');

/** Makes a repository of the language in `tree`. Returns the columns of its row except id and image, and a function for diffs. */
export async function makeLanguageTree(tree: string, language: Language) {
  await writeTree(tree, language.files);
  const git = commitTree(tree);
  const patchOf = async (files: Files): Promise<string> => {
    await writeTree(tree, files);
    const diff = git`diff`;
    git`checkout -q .`;
    return diff;
  };
  const columns = {
    ...{ base_commit: headOf(git), patch: await patchOf(language.gold), test_patch: '' },
    ...{ log_parser: language.parser, FAIL_TO_PASS: [language.test], PASS_TO_PASS: [] },
    eval_script: markedScript(language.script),
  };
  return { columns, patchOf };
}
