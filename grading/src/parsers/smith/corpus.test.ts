import { describe, expect, test } from 'vitest';
import { familyCases, readerRow, skipWithoutCases } from '../../corpus.fixture.ts';
import { parserName, parserNames, readLog } from '../../dialects/registry.ts';
import { SMITH } from './table.ts';

const OTHERS = ['verdict', 'valid', 'test-cmd'];
const cases = familyCases<{ status: Record<string, string> } | { error: string }>('swe-smith').filter(
  ({ parser }) => !OTHERS.includes(parser),
);

describe('the corpus of SWE-smith: every status map', () => {
  test('has cases of every reader if it is beside the repository', ({ skip }) => {
    skipWithoutCases(cases, skip);
    expect(new Set(cases.map(({ parser }) => parser))).toEqual(new Set(Object.keys(SMITH)));
  });

  test.each(cases)('$case', ({ parser, log, rows, expected }) => {
    const instance = readerRow({ instance_id: 'a__b.0a1b2c3d.x', repo: String(rows.repo), version: '' });
    const read = () => Object.fromEntries(readLog(parser, 'swesmith', log, instance));
    if ('error' in expected) expect(read).toThrow(RangeError);
    else expect(read()).toEqual(expected.status);
  });
});

test('readers of SWE-smith belong to its dialect alone', () => {
  expect(parserNames('swesmith')).toEqual(expect.arrayContaining(Object.keys(SMITH)));
  expect(parserName('ctest', '4.1.0')).toBeNull();
  expect(parserName('smith_pytest', 'swesmith')).toBe('python-pytest-v');
});

test('a log that claims more than a million tests is not read', () => {
  expect(() => readLog('aria2', 'swesmith', 'OK (99999999999)', readerRow())).toThrow(RangeError);
});
