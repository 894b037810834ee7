import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { describe, expect, test } from 'vitest';
import { type CommitPart, ParsedCommitError, patchOfParsedCommit } from './parsedcommit.ts';

type Line = [mark: ' ' | '+' | '-' | '\\', text: string];
const TYPES = { ' ': 'context', '+': 'added', '-': 'deleted', '\\': 'note' } as const;
const hunk = (old: [number, number | null], now: [number, number | null], ...lines: Line[]) => ({
  descriptor: {
    old_range: { start: old[0], length: old[1] },
    new_range: { start: now[0], length: now[1] },
    section: '',
  },
  line_group: { all_lines: lines.map(([mark, content]) => ({ content, type: TYPES[mark] })) },
});
const changed = (path: string, oldContent: string, ...hunks: object[]) => ({
  old_file_content: oldContent,
  header: { file: { path }, misc_line: null },
  index_line: null,
  is_binary_file: false,
  minus_file: { path: `a/${path}` },
  plus_file: { path: `b/${path}` },
  hunks,
});
const commit = (...file_diffs: object[]): string => JSON.stringify({ file_diffs });

/** The files after `git apply`. */
function applied(patch: string, files: Record<string, string>): Record<string, string> {
  const folder = temporaryFolder('parsedcommit');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  execFileSync('git', ['apply', '-'], { cwd: folder, input: patch, stdio: 'pipe' });
  return Object.fromEntries(
    Object.keys(files).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  );
}

const SHELF = 'a\nb\nc\nd\ne\nf\ng';

test('a hunk without context gets the context that git requires', () => {
  const content = commit(
    changed(
      'shelf.py',
      SHELF,
      hunk([2, null], [2, 2], ['-', 'b'], ['+', 'B'], ['+', 'B2']),
      hunk([3, 0], [5, null], ['+', 'C2']),
      hunk([6, null], [7, 0], ['-', 'f']),
    ),
  );
  const patch = patchOfParsedCommit(content, 'all_python');
  expect(applied(patch, { 'shelf.py': SHELF })).toEqual({ 'shelf.py': 'a\nB\nB2\nc\nC2\nd\ne\ng' });
});

test("the empty line at the end of the rows' hunks is dropped", () => {
  const content = commit(
    changed('a.py', 'x\n', hunk([1, null], [1, null], ['-', 'x'], ['+', 'y'], [' ', ''])),
  );
  const patch = patchOfParsedCommit(content, 'non_test_python');
  expect(patch).toBe('diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n');
  expect(applied(patch, { 'a.py': 'x\n' })).toEqual({ 'a.py': 'y\n' });
});

test('a part of a commit omits test files and other languages', () => {
  const one = (path: string) => changed(path, 'x\n', hunk([1, null], [1, null], ['-', 'x'], ['+', 'y']));
  const paths = ['a.py', 'test_a.py', 'b_test.py', 'tests/c.py', 'Test/d.py', 'contest/e.py', 'README.md'];
  const content = commit(...paths.map(one));
  const named = (part: CommitPart) =>
    [...patchOfParsedCommit(content, part).matchAll(/^\+\+\+ b\/(.*)$/gm)].map((match) => match[1]);
  expect(named('non_test_python')).toEqual(['a.py', 'contest/e.py']);
  expect(named('test_python')).toEqual(['test_a.py', 'b_test.py', 'tests/c.py', 'Test/d.py']);
  expect(named('all_python')).toHaveLength(6);
  expect(named('all_files')).toEqual(paths);
});

test.each([
  ['a binary file', { ...changed('a.py', ''), is_binary_file: true }, 'a.py: a binary file is not supported'],
  [
    'a renamed file',
    {
      ...changed('a.py', ''),
      header: { file: { path: 'a.py' }, misc_line: 'similarity index 90%\nrename from b.py' },
    },
    'a.py: a renamed or copied file is not supported',
  ],
  [
    'a hunk that is cut off',
    changed('a.py', '', hunk([1, 3], [1, 3], [' ', 'x'])),
    'a.py: a hunk has fewer lines than it announces',
  ],
  ['a file without a path', { ...changed('a.py', ''), header: {} }, 'file_diffs.0.header.file'],
])('%s is refused by name', (_what, file, message) => {
  expect(() => patchOfParsedCommit(commit(file), 'all_files')).toThrow(ParsedCommitError);
  expect(() => patchOfParsedCommit(commit(file), 'all_files')).toThrow(message);
});

test('text that is no parsed commit is refused', () => {
  expect(() => patchOfParsedCommit('', 'all_files')).toThrow('is not JSON');
  expect(() => patchOfParsedCommit('[]', 'all_files')).toThrow(ParsedCommitError);
});

describe("the corpus: upstream's own reconstructions", () => {
  const CORPUS = new URL('../../../../shared/grading/families/r2e-gym.jsonl', import.meta.url);
  const here = existsSync(CORPUS);
  type Case = {
    case: string;
    parser: string;
    rows: { parsed_commit_content: string };
    expected: Record<CommitPart, string>;
  };
  const cases: Case[] = here
    ? readFileSync(CORPUS, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .filter((entry) => entry.parser === 'gold')
    : [];
  const PARTS: CommitPart[] = ['all_files', 'all_python', 'non_test_python', 'test_python'];
  /** Intended differences from upstream's text. */
  const OTHERWISE: Record<string, string> = {
    'gold/mixed-stripped all_files': 'a binary file is refused; git refuses the text of upstream',
    'gold/unified-zero all_files': 'context is added; git refuses the text of upstream',
    'gold/unified-zero all_python': 'context is added; git refuses the text of upstream',
    'gold/unified-zero non_test_python': 'context is added; git refuses the text of upstream',
  };

  test('is beside the repository', ({ skip }) => {
    skip(!here, '../shared/grading/families is not beside the repository');
    expect(cases.length).toBeGreaterThan(0);
    for (const [name, why] of Object.entries(OTHERWISE)) console.info(`${name}: ${why}`);
  });

  for (const entry of cases) {
    for (const part of PARTS) {
      const name = `${entry.case} ${part}`;
      test(name, () => {
        const read = () => patchOfParsedCommit(entry.rows.parsed_commit_content, part);
        if (name === 'gold/mixed-stripped all_files') expect(read).toThrow('pkg/data.bin: a binary file');
        else if (name in OTHERWISE) {
          const calc = JSON.parse(entry.rows.parsed_commit_content).file_diffs[0];
          expect(applied(read(), { 'pkg/calc.py': calc.old_file_content })).toEqual({
            'pkg/calc.py': calc.new_file_content,
          });
        }
        // Upstream's text differs only by the empty line after the last hunk.
        else expect(read()).toBe(entry.expected[part].replace(/\n \n$/, '\n'));
      });
    }
  }
});
