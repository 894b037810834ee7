import { SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { exitCode } from './exit.ts';
import { errorExitCode } from './run.ts';

const judged = (a: number, b: number) =>
  new Map([
    ['a', a],
    ['b', b],
  ]);

test.each([
  ['all judged', { judgedByGroup: judged(4, 4) }, 0],
  ['some not judged', { judgedByGroup: judged(4, 3) }, 10],
  ['enough for a group', { judgedByGroup: judged(4, 3), minGroup: 3 }, 0],
  ['not enough for a group', { judgedByGroup: judged(4, 2), minGroup: 3 }, 11],
  ['all judged, whatever the minimum', { judgedByGroup: judged(4, 4), minGroup: 8 }, 0],
  ['interrupted', { judgedByGroup: judged(4, 2), minGroup: 1, complete: false }, 130],
])('%s', (_name, ending, code) => {
  expect(exitCode({ groupSize: 4, complete: true, ...ending })).toBe(code);
});

test('errors that reach the top', () => {
  expect(errorExitCode(new UsageError('x'))).toBe(2);
  expect(errorExitCode(new SwefarmError('bad_rollout_id', 'x'))).toBe(2);
  expect(errorExitCode(new UnusableError('redis_unreachable', 'x'))).toBe(12);
  expect(errorExitCode(new Error('x'))).toBe(12);
});
