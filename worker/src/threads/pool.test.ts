import { planEvaluation } from '@swefarm/grading';
import { Instance } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { startThreads } from './pool.ts';
import type { GradeInput } from './tasks.ts';

const instance = Instance.parse({
  instance_id: 'i__i-1',
  repo: 'i/i',
  base_commit: 'c0ffee',
  problem_statement: 'p',
  FAIL_TO_PASS: ['tests/run.py::test_one'],
  PASS_TO_PASS: [],
  family: 'custom',
  test_cmd: 'pytest -rA',
  log_parser: 'pytest',
  image: 'none',
});
const plan = planEvaluation(instance);

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
  const reports = await Promise.all(
    sizes.map((size) => threads.run('grade', input(size), { timeoutMs: 100_000 })),
  );
  expect(reports.every(({ resolved }) => resolved === false)).toBe(true);
});

test('a task over its time limit fails alone; the next one gets a new thread', async () => {
  await using threads = startThreads(1);
  await expect(threads.run('grade', input(400_000), { timeoutMs: 1 })).rejects.toMatchObject({
    code: 'thread_timeout',
  });
  await expect(threads.run('grade', input(10), { timeoutMs: 100_000 })).resolves.toMatchObject({
    resolved: false,
  });
});

test('a thread that expect() started takes the first task', async () => {
  await using threads = startThreads(1);
  threads.expect();
  threads.expect();
  await expect(threads.run('grade', input(10), { timeoutMs: 100_000 })).resolves.toMatchObject({
    resolved: false,
  });
});

test('an error in a thread reaches the caller, and the thread takes the next task', async () => {
  await using threads = startThreads(1);
  const broken = { ...input(10), plan: null } as unknown as GradeInput;
  await expect(threads.run('grade', broken, { timeoutMs: 100_000 })).rejects.toThrow();
  await expect(threads.run('grade', input(10), { timeoutMs: 100_000 })).resolves.toMatchObject({
    resolved: false,
  });
});
