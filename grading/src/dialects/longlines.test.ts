import { expect, test } from 'vitest';
import { readerRow } from '../corpus.fixture.ts';
import { readLog } from './registry.ts';

const read = (parser: string, dialect: '4.1.0' | 'swe-rebench-v2', log: string) =>
  Object.fromEntries(readLog(parser, dialect, log, readerRow({})));

test.each([
  ['gotest', '4.1.0', '--- PASS: TestX (0.00s)', '--- FAIL: TestX (0.00s)', 'TestX'],
  ['cargo', '4.1.0', 'test x ... ok', 'test x ... FAILED', 'x'],
  ['r_v2', 'swe-rebench-v2', '* checking x ... OK', '* checking x ...', 'x'],
] as const)('blanks before a failure do not hide it from %s', (parser, dialect, pass, fail, name) => {
  const blanks = ' '.repeat(4_000_001);
  const log = parser === 'r_v2' ? `${fail}\n${blanks}FAIL\n` : `${pass}\n${blanks}${fail}\n`;
  expect(read(parser, dialect, log)).toEqual({ [name]: 'FAILED' });
});

test('the words of ctest are read in any case', () => {
  const line = (name: string, word: string): string => `1/6 Test #1: ${name} ....   ${word}\n`;
  const log = line('a', 'timeout') + line('b', 'pASSED') + line('c', 'Skipped') + line('d', 'FAILED');
  expect(read('cpp_v4', 'swe-rebench-v2', log)).toEqual({
    a: 'FAILED',
    b: 'PASSED',
    c: 'SKIPPED',
    d: 'FAILED',
  });
});

test('a mark at the end of a line counts before the same mark at its start', () => {
  expect(read('haskell', 'swe-rebench-v2', '✗ foo [✗]\n✓ bar [✗]\n')).toEqual({
    '✗ foo': 'FAILED',
    'bar [✗]': 'PASSED',
  });
});

test('names that every object inherits are no statuses', () => {
  const log = '* checking a ... constructor\n* checking b ... __proto__\n';
  expect(read('r_v2', 'swe-rebench-v2', log)).toEqual({ a: 'PASSED', b: 'PASSED' });
});

test.each([
  [
    'django',
    't (a.B) ... Testing against Django installed in ',
    ' silenced).\nok\n',
    { 't (a.B)': 'PASSED' },
  ],
  ['lighthouse', 'running 3 test files\n    ✔ a\n', '', { a: 'PASSED' }],
  ['openlayers', '  1) ', 'Error:\n  2) b Error:\n', { b: 'FAILED' }],
])('text of 12 million characters between two marks ends no reading by %s', (parser, open, close, found) => {
  const text = `✓${`${' '.repeat(2_000_000)}\n`.repeat(6)}`;
  const row = readerRow({ version: '10.0' });
  expect(Object.fromEntries(readLog(parser, '5.0.2', open + text + close, row))).toMatchObject(found);
});
