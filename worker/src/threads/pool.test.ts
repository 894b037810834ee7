import { planEvaluation } from '@swefarm/grading';
import { bareInstance } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { startThreads } from './pool.ts';
import type { GradeInput } from './tasks.ts';

const instance = bareInstance({ test_cmd: 'pytest -rA', log_parser: 'pytest' });
const plan = planEvaluation(instance);
const PATIENT = { timeoutMs: 100_000 };

const input = (bytes: number): GradeInput => ({
  instance,
  plan,
  patch: 'x',
  facts: {
    patch_state: 'applied',
    applied_with: 'git apply',
    timed_out: false,
    timeout_seconds: 60,
    exit_code: 0,
    sandbox_killed: false,
    image_digest: 'd',
  },
  log: Buffer.alloc(bytes, 'a line of a log\n'),
});

test('many small and large tasks all complete on few threads', async () => {
  await using threads = startThreads(2);
  const sizes = [10, 100_000, 100, 10_000, 300_000, 1];
  const reports = await Promise.all(sizes.map((size) => threads.run('grade', input(size), PATIENT)));
  expect(reports.every(({ resolved }) => resolved === false)).toBe(true);
});

test('a task over its time limit fails alone; the next one gets a new thread', async () => {
  await using threads = startThreads(1);
  await expect(threads.run('grade', input(400_000), { timeoutMs: 1 })).rejects.toMatchObject({
    code: 'thread_timeout',
  });
  expect(await threads.run('grade', input(10), PATIENT)).toMatchObject({ resolved: false });
});

test('a thread that expect() started takes the first task', async () => {
  await using threads = startThreads(1);
  threads.expect();
  threads.expect();
  expect(await threads.run('grade', input(10), PATIENT)).toMatchObject({ resolved: false });
});

test('an error in a thread reaches the caller, and the thread takes the next task', async () => {
  await using threads = startThreads(1);
  const broken = { ...input(10), plan: null } as unknown as GradeInput;
  await expect(threads.run('grade', broken, PATIENT)).rejects.toThrow();
  expect(await threads.run('grade', input(10), PATIENT)).toMatchObject({ resolved: false });
});
