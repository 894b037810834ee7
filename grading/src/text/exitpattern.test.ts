import { expect, test } from 'vitest';
import { lastExitCode, readExitPattern } from './exitpattern.ts';

const codeIn = (pattern: string, log: string): number | null => {
  const read = readExitPattern(pattern);
  if (!read) throw new Error(`not of the form: ${pattern}`);
  return lastExitCode(read, log);
};

test.each([
  ['OPENSWE_EXIT_CODE=(\\d+)', 'OPENSWE_EXIT_CODE=1\nOPENSWE_EXIT_CODE=0\n', 0],
  ['OPENSWE_EXIT_CODE=(\\d+)', 'OPENSWE_EXIT_CODE=0\nOPENSWE_EXIT_CODE=x\n', 0],
  ['EXIT (-?[0-9]+)!', 'EXIT 5\nEXIT -3!\nEXIT 7.', -3],
  ['exit\\.code\\[(\\d+)\\]', 'exitxcode[1] exit.code[2]', 2],
  ['code=(\\d+)', 'no such thing', null],
  ['code=(\\d+)', 'code=12345678901', null],
  ['code=(\\d+)', '', null],
])('%s in %j is %s', (pattern, log, code) => {
  expect(codeIn(pattern, log)).toBe(code);
});

test.each([
  '(a+)+$',
  'x=(\\d+)|y',
  '.*(\\d+)',
  '(\\d+)',
  'code=\\d+',
  'a(\\d+)b(\\d+)',
  '^code=(\\d+)',
  'code=(\\d+',
  'a.b=(\\d+)',
  '\\w=(\\d+)',
])('%s is not of the form', (pattern) => {
  expect(readExitPattern(pattern)).toBeNull();
});

test('a log of nothing but the text before the number is read in time', () => {
  // The CPU time of this thread, so that other processes do not fail the test.
  const began = process.threadCpuUsage();
  expect(codeIn('code=(\\d+)', 'code='.repeat(2_000_000))).toBeNull();
  const { user, system } = process.threadCpuUsage(began);
  expect((user + system) / 1000).toBeLessThan(5_000);
});
