/** A sandbox's process is the kernel's first choice when memory ends, before the worker that started it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ENTER = join(import.meta.dirname, 'enter.sh');
const OWN = Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));

/** The score of what `enter.sh` starts for a worker with this score. */
const scoreFrom = (score: number): number => {
  const enter = `exec sh ${ENTER} "" /dev/null /dev/null "" cat /proc/self/oom_score_adj`;
  return Number(execFileSync('sh', ['-c', `echo ${score} >/proc/self/oom_score_adj; ${enter}`]));
};

test.for([
  [OWN, OWN < 500 ? 500 : 1000],
  // Of a pod that asks for less than it may take, as the kubelet gives it: nobody without rights may lower it.
  [979, 1000],
])('a worker with the score %d has sandboxes with %d', ([worker = 0, sandbox]) => {
  expect(scoreFrom(worker)).toBe(sandbox);
});
