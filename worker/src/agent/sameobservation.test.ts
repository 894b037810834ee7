import { expect, test } from 'vitest';
import { isSameObservation } from './sameobservation.ts';

test.each([
  ['the same text', 'a\nb', 'a\nb'],
  ['durations of pytest', '==== 5 passed in 0.12s ====', '=== 5 passed in 12.04s ==='],
  ['durations of unittest', 'Ran 5 tests in 0.012s\n\nOK', 'Ran 5 tests in 0.103s\n\nOK'],
  ['durations of time', 'real\t0m0.123s', 'real\t0m1.504s'],
  ['dates of ls', '-rw-r--r-- 1 root root 12 Nov 26 20:03 a', '-rw-r--r-- 1 root root 12 Nov 27 01:13 a'],
  ['output of date', 'Thu Nov 26 19:59:48 UTC 2026', 'Fri Nov 27 00:00:01 UTC 2026'],
  ['times in logs', '2026-11-26 20:03:11,123 INFO x', '2026-11-26 20:04:59,001 INFO x'],
  ['addresses of objects', '<A object at 0x7f8a1c2b3d40>', '<A object at 0x7f00aa2b3d40>'],
])('%s are equal', (_name, one, other) => expect(isSameObservation(one, other)).toBe(true));

test.each([
  ['another count', '5 passed in 0.12s', '4 passed in 0.12s'],
  ['another file size', '12 Nov 26 20:03 a', '13 Nov 26 20:03 a'],
  ['another number', 'seed 4711', 'seed 4712'],
  ['another exit code', '<returncode>0</returncode>', '<returncode>1</returncode>'],
  ['a missing text', null, ''],
])('%s is different', (_name, one, other) => expect(isSameObservation(one, other)).toBe(false));
