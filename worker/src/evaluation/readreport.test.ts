import { decideReward, officialReport, planEvaluation } from '@swefarm/grading';
import { bareFacts, bareInstance, printingScript } from '@swefarm/testkit';
import { afterAll, expect, test } from 'vitest';
import { startThreads, type Threads } from '../threads/pool.ts';
import type { GradeInput } from '../threads/tasks.ts';
import { readReport } from './evaluate.ts';

const threads = startThreads(1);
afterAll(() => threads[Symbol.asyncDispose]());

const instance = bareInstance({
  FAIL_TO_PASS: ['t.py::test_a'],
  log_parser: 'pytest',
  eval_script: printingScript('x'),
});
const evaluation = (changes: Partial<GradeInput['facts']> = {}): GradeInput => ({
  instance,
  plan: planEvaluation(instance),
  patch: '',
  facts: {
    patch_state: 'applied',
    applied_with: 'git apply --verbose',
    timed_out: false,
    timeout_seconds: 1800,
    exit_code: 0,
    sandbox_killed: false,
    image_digest: null,
    ...changes,
  },
  log: Buffer.from('PASSED t.py::test_a\n'.repeat(500_000)),
});

test('a log that cannot be parsed in time gets the verdict of one on which the harness breaks', async () => {
  const report = await readReport(evaluation(), threads, 1);
  expect(report).toMatchObject({ evaluation: 'completed', resolved: false, tests_status: null });
  expect(officialReport(report, { log: null, model: 'm', timeoutSeconds: 1800 })).toBeNull();
  const { patch_state, evaluation: end, resolved, trust } = report;
  const judged = { patch_state, evaluation: end, resolved, trust: trust.level };
  const decided = decideReward(bareFacts({ exit_status: null, ...judged }));
  expect(decided).toMatchObject({ outcome: 'judged', reward: 0, row: 'unresolved' });
});

test('a log that ends its thread gets the same verdict', async () => {
  const broken: Pick<Threads, 'run'> = {
    run: (name, input, options) =>
      (input as GradeInput).log?.length
        ? Promise.reject(new Error('out of memory'))
        : threads.run(name, input, options),
  };
  const report = await readReport(evaluation(), broken);
  expect(report).toMatchObject({ evaluation: 'completed', resolved: false, unreadable: 'raises' });
});

test('an unreadable log of a killed container is reported as sandbox_killed', async () => {
  expect((await readReport(evaluation({ sandbox_killed: true }), threads, 1)).evaluation).toBe(
    'sandbox_killed',
  );
});

test('a node that cannot parse an empty log in time is at fault', async () => {
  const slow: Pick<Threads, 'run'> = {
    run: (name, input) => threads.run(name, input, { timeoutMs: 1 }),
  };
  await expect(readReport(evaluation(), slow, 1)).rejects.toMatchObject({ failureClass: 'parse_timeout' });
});
