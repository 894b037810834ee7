import { fileWith } from '@swefarm/datasets/test/rows.ts';
import { expect, test } from 'vitest';
import { readLastError } from './lasterror.ts';

test.each([
  [
    '{"level":50,"msg":"cannot start","err":{"message":"no engine"}}\n{"level":30,"msg":"bye"}\n',
    'cannot start: no engine',
  ],
  ['{"level":30,"msg":"ready"}\nswefarm-worker: no runtime\n', 'swefarm-worker: no runtime'],
  [
    'TypeError: x is not a function\n    at f (a.ts:1:2)\n\nNode.js v24.0.0\n',
    'TypeError: x is not a function',
  ],
  ['{"level":30,"msg":"ready"}\n{"level":50,"ms', null],
  ['', null],
])('of %j: %j', async (log, words) => {
  expect(await readLastError(await fileWith('worker.log', log))).toBe(words);
});
