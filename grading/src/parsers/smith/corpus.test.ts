import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parserName, parserNames, readLog } from '../../dialects/registry.ts';
import { SMITH } from './table.ts';

/** Logs with the maps of SWE-smith's own code, on machines that have them beside the repository. */
const CORPUS = new URL('../../../../../shared/grading/families/swe-smith.jsonl', import.meta.url);
type Case = {
  case: string;
  parser: string;
  log: string;
  rows: { repo: string };
  expected: { status: Record<string, string> } | { error: string };
};
const OTHERS = ['verdict', 'valid', 'test-cmd'];

const here = existsSync(CORPUS);
const cases: Case[] = here
  ? readFileSync(CORPUS, 'utf8')
      .trim()
      .split('\n')
      .map((line): Case => JSON.parse(line))
      .filter(({ parser }) => !OTHERS.includes(parser))
  : [];

describe('the corpus of SWE-smith: every status map', () => {
  test('has cases of every reader if it is beside the repository', ({ skip }) => {
    skip(!here, '../shared/grading/families is not beside the repository');
    expect(new Set(cases.map(({ parser }) => parser))).toEqual(new Set(Object.keys(SMITH)));
  });

  test.each(cases)('$case', ({ parser, log, rows, expected }) => {
    const instance = { instance_id: 'a__b.0a1b2c3d.x', repo: rows.repo, version: '', test_patch: '' };
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
  const instance = { instance_id: 'a', repo: 'a', version: '', test_patch: '' };
  expect(() => readLog('aria2', 'swesmith', 'OK (99999999999)', instance)).toThrow(RangeError);
});
