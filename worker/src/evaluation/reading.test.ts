import { decideReward, officialReport, planEvaluation } from '@swefarm/grading';
import { bareInstance, printingScript } from '@swefarm/testkit';
import { afterAll, expect, test } from 'vitest';
import { startThreads, type Threads } from '../threads/pool.ts';
import { type Evaluation, readVerdict } from './reading.ts';

const threads = startThreads(1);
afterAll(() => threads[Symbol.asyncDispose]());

const instance = bareInstance({
  FAIL_TO_PASS: ['t.py::test_a'],
  log_parser: 'pytest',
  eval_script: printingScript('x'),
});
const evaluation = (changes: Partial<Evaluation['facts']> = {}): Evaluation => ({
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

test('a log that nobody can read in time is judged as one on which the harness breaks', async () => {
  const report = await readVerdict(evaluation(), threads, 1);
  expect(report).toMatchObject({ evaluation: 'completed', resolved: false, tests_status: null });
  expect(officialReport(report, { log: null, model: 'm', timeoutSeconds: 1800 })).toBeNull();
  const facts = {
    exit_status: null,
    patch_origin: 'tree' as const,
    cut_by_token_limit: false,
    policy_share: 0,
    sandbox_killed: false,
    gold_healthy: null,
    gold_time_share: null,
    ungraded: false,
  };
  const { patch_state, evaluation: end, resolved, trust } = report;
  const decided = decideReward({ ...facts, patch_state, evaluation: end, resolved, trust: trust.level });
  expect(decided).toMatchObject({ outcome: 'judged', reward: 0, row: 'unresolved' });
});

test('its container was killed all the same', async () => {
  expect((await readVerdict(evaluation({ sandbox_killed: true }), threads, 1)).evaluation).toBe(
    'sandbox_killed',
  );
});

test('a node on which not even an empty log is read is at fault', async () => {
  const slow: Pick<Threads, 'run'> = {
    run: (name, input) => threads.run(name, input, { timeoutMs: 1 }),
  };
  await expect(readVerdict(evaluation(), slow, 1)).rejects.toMatchObject({ failureClass: 'parse_timeout' });
});
