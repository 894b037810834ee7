import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REWARD_TABLE } from '@swefarm/grading';
import { InstancePlan, type RewardFacts } from '@swefarm/shared';
import { bareFacts, bareInstance } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { type OutputLine, outputLine } from '@swefarm/trajectories';
import { aFailure, aLine, aResult } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { mergeEvaluation, readLostEvaluations } from '../eval/lostevaluations.ts';
import { describeChange } from './changes.ts';
import { regradeLog, rewardLineAgain } from './regrade.ts';
import { outputLines } from './sources.ts';

const facts = (over: Partial<RewardFacts> = {}): RewardFacts => bareFacts({ policy_share: 0.1, ...over });
const lost = (over: Partial<OutputLine>): OutputLine => ({
  ...outputLine(aFailure(), { patch: 'p', report: null }),
  failure: { stage: 'evaluation', class: 'evaluation_lost', message: 'gone', attempts: 3 },
  ...over,
});
const TABLE = `${REWARD_TABLE.name}:${REWARD_TABLE.hash}`;
const none = { was: {}, now: {} };

const PARTS = { resolved: 1, invalid_patch: 0, turns: 3, submitted: 1 };

test('the same rules change nothing but the name of the table', () => {
  const line = aLine({ facts: facts({ turns: 3 }), reward_parts: PARTS });
  const again = rewardLineAgain(line, null, none);
  expect(again).toEqual({ ...line, reward_table: TABLE });
  // An unchanged output is equal byte for byte.
  expect(Object.keys(again ?? {})).toEqual(Object.keys({ ...line, reward_table: TABLE }));
});

test('an override decides about what the table would have graded', () => {
  const line = aLine({ facts: facts({ exit_status: 'turn_limit' }), exit_status: 'turn_limit' });
  const fresh = rewardLineAgain(line, null, { was: {}, now: { overrides: { on_limit: 'zero' } } });
  expect(fresh).toMatchObject({ outcome: 'judged', reward: 0, reward_row: 'turn_limit', resolved: true });
  expect(describeChange('x', line, fresh as OutputLine)).toBe('x: reward 1.0 (resolved) → 0.0 (turn_limit)');
});

test('a failure of the table can be rewarded, one of infrastructure cannot', () => {
  const rules = { was: {}, now: { overrides: { timeout_unexplained: 'zero' } as const } };
  const timedOut = lost({
    failure: { stage: 'evaluation', class: 'evaluation_timeout', message: 'twice', attempts: 2 },
    facts: facts({ evaluation: 'timed_out', resolved: false }),
  });
  expect(rewardLineAgain(timedOut, null, rules)).toMatchObject({
    outcome: 'judged',
    reward: 0,
    failure: null,
  });
  expect(rewardLineAgain(timedOut, null, none)).toEqual({ ...timedOut, reward_table: TABLE });
  const gone = lost({ facts: facts({ evaluation: 'not_run', resolved: null }) });
  expect(rewardLineAgain(gone, null, rules)).toBe(gone);
  expect(rewardLineAgain(lost({ facts: null }), null, rules)?.outcome).toBe('failed');
});

test('a judged line without facts cannot be rewarded again', () => {
  expect(rewardLineAgain(aLine(), null, none)).toBeNull();
});

test('a lost evaluation that was made up for gives the old line its verdict', () => {
  const old = lost({
    facts: facts({ evaluation: 'not_run', resolved: null, exit_status: 'turn_limit' }),
    turns: 7,
  });
  const given = facts({ patch_origin: 'given', exit_status: null });
  const fresh = outputLine(aResult({ rollout_id: 'r2.a__b-1.0', facts: given, turns: 0 }), {
    patch: 'p',
    report: null,
  });
  expect(mergeEvaluation(old, fresh, {})).toMatchObject({
    rollout_id: old.rollout_id,
    outcome: 'judged',
    resolved: true,
    reward: 1,
    failure: null,
    turns: 7,
    facts: { exit_status: 'turn_limit', patch_origin: 'tree', resolved: true },
    evaluated_by: { rollout_id: 'r2.a__b-1.0' },
  });
  const again = outputLine(aFailure(), { patch: null, report: null });
  expect(mergeEvaluation(old, again, {})).toBe(old);
});

test('a score is rewarded again from its facts, and its parts go when another row decides', () => {
  const parts = { tests: 0.25, style: 0.5 };
  const line = aLine({
    facts: facts({
      ...{ score: 0.75, resolved: null, reward_components: parts, exit_status: 'turn_limit', turns: 3 },
    }),
    ...{ resolved: null, reward: 0.75, reward_components: parts, reward_row: 'scored' },
    reward_parts: { ...PARTS, resolved: 0.75, submitted: 0 },
  });
  expect(rewardLineAgain(line, null, none)).toEqual({ ...line, reward_table: TABLE });
  const zero = rewardLineAgain(line, null, {
    was: {},
    now: { overrides: { on_limit: 'zero' } },
  }) as OutputLine;
  expect(zero).toMatchObject({ reward: 0, reward_row: 'turn_limit', resolved: false });
  expect(zero).not.toHaveProperty('reward_components');
  expect(rewardLineAgain(zero, null, none)).toMatchObject({ reward: 0.75, reward_components: parts });
  expect(describeChange('x', line, zero)).toBe(
    'x: no verdict → unresolved, reward 0.75 (scored) → 0.0 (turn_limit)',
  );
});

test('a log is graded again by the row’s plan, unless the log did not decide the outcomes', () => {
  const own = (outcomes: object) =>
    bareInstance({
      FAIL_TO_PASS: ['t.py::test_a'],
      plan: InstancePlan.parse({ grader: 'quay-1.0', script: '', outcomes, verdict: { rule: 'swebench' } }),
    });
  const stored = {
    log: "+ : '>>>>> Start Test Output'\nPASSED t.py::test_a\n=== 1 passed in 0.1s ===\n+ : '>>>>> End Test Output'\n",
    patch: 'p',
    facts: {
      ...{ patch_state: 'not_applied' as const, applied_with: null, ran_unapplied: true, timed_out: false },
      ...{ sandbox_killed: false, image_digest: null, timeout_seconds: 0, exit_code: null },
    },
  };
  const log = own({ from: 'log', dialect: '4.1.0', parser: 'pytest' });
  expect(regradeLog(log, 'auto', stored, null)).toMatchObject({
    ...{ resolved: true, grader: 'quay-1.0', patch_state: 'not_applied', evaluation: 'completed' },
  });
  expect(() => regradeLog(own({ from: 'junit', file: '/r.xml' }), 'auto', stored, null)).toThrow(
    /its outcomes come from "junit", which is not stored with its log/,
  );
});

test('an output without results has no line to regrade and no patch to evaluate again', async () => {
  const path = join(temporaryFolder('regrade'), 'out.jsonl');
  await writeFile(path, '');
  expect(await Array.fromAsync(outputLines(path))).toEqual([]);
  await expect(readLostEvaluations(path, 'm', new Set())).rejects.toMatchObject({ code: 'nothing_lost' });
});
