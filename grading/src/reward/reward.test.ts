import { type RewardChoice, RewardComponents, type RewardFacts, Score } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import { checkOverrides, decideReward, needsEvaluation } from './reward.ts';
import { REWARD_ROWS, REWARD_TABLE } from './table.ts';

const facts = (changes: Partial<RewardFacts> = {}): RewardFacts =>
  bareFacts({ policy_share: 0.2, ...changes });
const notRun = { evaluation: 'not_run', resolved: null } as const;

type Case = { row: string; facts: RewardFacts; gives: number | null | string };

/** One line per row of the table: facts that lead to it, and a reward or the class of the failure. */
const CASES: Case[] = [
  { row: 'ungraded', facts: facts({ ...notRun, ungraded: true }), gives: null },
  { row: 'sandbox_killed', facts: facts({ ...notRun, sandbox_killed: true }), gives: 0 },
  {
    row: 'policy_slow',
    facts: facts({ exit_status: 'time_limit', policy_share: 0.5, policy_pace: 0.24 }),
    gives: 'policy_slow',
  },
  {
    row: 'policy_slow',
    facts: facts({ ...notRun, exit_status: 'time_limit', policy_share: 0.9, policy_pace: 0, training: true }),
    gives: 'policy_slow',
  },
  // As far as the facts show, the model was thinking.
  ...[0.25, 1, null].map((policy_pace) => ({
    row: 'policy_time',
    facts: facts({ exit_status: 'time_limit', policy_share: 0.9, policy_pace, training: true }),
    gives: null,
  })),
  {
    row: 'policy_time',
    facts: facts({
      ...{ ...notRun, exit_status: 'time_limit', patch_state: 'empty' },
      ...{ policy_share: 0.5, policy_pace: 1, training: true },
    }),
    gives: null,
  },
  {
    row: 'resolved',
    facts: facts({ exit_status: 'time_limit', policy_share: 0.9, policy_pace: 1, training: false }),
    gives: 1,
  },
  // Facts from before pace and kind were recorded.
  { row: 'resolved', facts: facts({ exit_status: 'time_limit', policy_share: 0.9 }), gives: 1 },
  {
    row: 'resolved',
    facts: facts({ exit_status: 'time_limit', policy_share: 0.49, policy_pace: 0.1, training: true }),
    gives: 1,
  },
  { row: 'format_limit', facts: facts({ ...notRun, exit_status: 'format_limit' }), gives: 0 },
  { row: 'resolved', facts: facts({ exit_status: 'turn_limit' }), gives: 1 },
  { row: 'resolved', facts: facts({ exit_status: 'context_limit' }), gives: 1 },
  { row: 'resolved', facts: facts({ exit_status: 'time_limit', policy_share: 0.49 }), gives: 1 },
  { row: 'unresolved', facts: facts({ cut_by_token_limit: true, resolved: false }), gives: 0 },
  { row: 'empty_patch', facts: facts({ ...notRun, patch_state: 'empty' }), gives: 0 },
  { row: 'empty_patch', facts: facts({ ...notRun, patch_state: 'none' }), gives: 0 },
  { row: 'empty_patch', facts: facts({ patch_state: 'empty', resolved: false }), gives: 0 },
  { row: 'patch_too_large', facts: facts({ ...notRun, patch_state: 'too_large' }), gives: 0 },
  {
    row: 'patch_not_applied',
    facts: facts({ ...notRun, patch_state: 'not_applied', patch_origin: 'submission' }),
    gives: 0,
  },
  {
    row: 'patch_not_applied',
    facts: facts({ ...notRun, patch_state: 'not_applied', patch_origin: 'given' }),
    gives: 0,
  },
  { row: 'patch_broken', facts: facts({ ...notRun, patch_state: 'not_applied' }), gives: 0 },
  { row: 'forged', facts: facts({ trust: 'forged' }), gives: 0 },
  { row: 'evaluation_killed', facts: facts({ evaluation: 'sandbox_killed', resolved: false }), gives: 0 },
  {
    row: 'timeout',
    facts: facts({ evaluation: 'timed_out', resolved: null, gold_time_share: 0.4 }),
    gives: 0,
  },
  {
    row: 'timeout_unexplained',
    facts: facts({ evaluation: 'timed_out', resolved: null }),
    gives: 'evaluation_timeout',
  },
  {
    row: 'timeout_unexplained',
    facts: facts({ evaluation: 'timed_out', resolved: null, gold_time_share: 0.5 }),
    gives: 'evaluation_timeout',
  },
  {
    row: 'timeout_of_patch',
    facts: facts({ evaluation: 'timed_out', resolved: false, control_time_share: 0.4 }),
    gives: 0,
  },
  ...[0.5, 1, null].map((control_time_share) => ({
    row: 'timeout_unexplained',
    facts: facts({ evaluation: 'timed_out', resolved: false, control_time_share }),
    gives: 'evaluation_timeout',
  })),
  {
    row: 'tests_broken',
    facts: facts({ evaluation: 'tests_cannot_start', resolved: false, gold_healthy: true }),
    gives: 0,
  },
  {
    row: 'tests_cannot_start',
    facts: facts({ evaluation: 'tests_cannot_start', resolved: false }),
    gives: 'tests_cannot_start',
  },
  {
    row: 'tests_cannot_start',
    facts: facts({ evaluation: 'tests_cannot_start', resolved: false, gold_healthy: false }),
    gives: 'tests_cannot_start',
  },
  ...[null, false].map((gold_healthy) => ({
    row: 'tests_broken_by_patch',
    facts: facts({
      ...({ evaluation: 'tests_cannot_start', resolved: false } as const),
      ...{ gold_healthy, tests_start: true },
    }),
    gives: 0,
  })),
  ...[null, false].map((tests_start) => ({
    row: 'tests_cannot_start',
    facts: facts({ evaluation: 'tests_cannot_start', resolved: false, tests_start }),
    gives: 'tests_cannot_start',
  })),
  {
    row: 'parser_broken_by_patch',
    facts: facts({ evaluation: 'parser_failed', resolved: false, tests_start: true }),
    gives: 0,
  },
  {
    row: 'parser_broken',
    facts: facts({ evaluation: 'parser_failed', resolved: false, gold_healthy: true }),
    gives: 0,
  },
  ...[false, null].map((gold_healthy) => ({
    row: 'parser_failed',
    facts: facts({ evaluation: 'parser_failed', resolved: false, gold_healthy }),
    gives: 'parser_failed',
  })),
  { row: 'not_evaluated', facts: facts(notRun), gives: 'evaluation_lost' },
  { row: 'resolved', facts: facts({ trust: 'suspicious' }), gives: 1 },
  { row: 'unresolved', facts: facts({ resolved: false }), gives: 0 },
  // A grader that gives a number; the verdict beside it, where there is one, stays what it is.
  ...[0.25, 1, 0, -2.5].map((score) => ({
    row: 'scored',
    facts: facts({ score, resolved: null }),
    gives: score,
  })),
  { row: 'scored', facts: facts({ score: 0.5, resolved: false }), gives: 0.5 },
  { row: 'scored', facts: facts({ score: 0.5, exit_status: 'turn_limit' }), gives: 0.5 },
  { row: 'forged', facts: facts({ score: 1, resolved: null, trust: 'forged' }), gives: 0 },
  {
    row: 'tests_cannot_start',
    facts: facts({ evaluation: 'tests_cannot_start', score: null, resolved: false }),
    gives: 'tests_cannot_start',
  },
];

describe('the default table, row by row', () => {
  test.each(CASES)('$row gives $gives', ({ row, facts: given, gives }) => {
    const decided = decideReward(given, {});
    expect(decided.row).toBe(row);
    if (typeof gives === 'string') {
      expect(decided).toMatchObject({ outcome: 'failed', reward: null, failure: { class: gives } });
    } else {
      expect(decided).toMatchObject({ outcome: 'judged', reward: gives, failure: null });
    }
  });

  test('every row is reached by a case or passes facts on to the next rows', () => {
    const reached = new Set(CASES.map((entry) => entry.row));
    const passing = REWARD_ROWS.filter((row) => row.verdict === 'grade').map((row) => row.row);
    expect([...reached, ...passing].sort()).toEqual(REWARD_ROWS.map((row) => row.row).sort());
  });
});

describe('overrides', () => {
  const free = REWARD_ROWS.filter((row) => !row.fixed);
  const failing = (name: string) => {
    const verdict = REWARD_ROWS.find((row) => row.row === name)?.verdict;
    return typeof verdict === 'object' && 'failed' in verdict;
  };
  /** Facts that meet the row: its own case; for rows that grade by default, those of the limit that names them. */
  const meeting = (name: string): Case => {
    const own = CASES.find((entry) => entry.row === name);
    if (own) return own;
    if (name === 'token_limit') return { row: name, facts: facts({ cut_by_token_limit: true }), gives: 1 };
    return { row: name, facts: facts({ exit_status: name as RewardFacts['exit_status'] }), gives: 1 };
  };

  test.each(free.map((row) => row.row))('%s: zero', (name) => {
    const { facts: given } = meeting(name);
    expect(decideReward(given, { [name]: 'zero' })).toEqual({
      outcome: 'judged',
      reward: 0,
      resolved: given.resolved ?? false,
      row: name,
      failure: null,
    });
  });

  test.each(free.map((row) => row.row))('%s: none', (name) => {
    const { facts: given } = meeting(name);
    const decided = decideReward(given, { [name]: 'none' });
    expect(decided).toMatchObject({ outcome: failing(name) ? 'failed' : 'judged', reward: null, row: name });
  });

  test.each(free.map((row) => row.row))('%s: grade', (name) => {
    const { facts: given } = meeting(name);
    const ended = given.evaluation === 'completed';
    const decided = decideReward(given, { [name]: 'grade' });
    if (ended) expect(['resolved', 'unresolved', 'scored']).toContain(decided.row);
    else expect(decided).toEqual(decideReward(given, {}));
  });

  test('on_limit speaks for all limits, a single row beats it', () => {
    const thinking = facts({ exit_status: 'time_limit', policy_share: 0.9, training: true });
    expect(decideReward(thinking, { on_limit: 'grade' })).toMatchObject({ reward: 1, row: 'resolved' });
    expect(decideReward(thinking, { on_limit: 'zero' })).toMatchObject({ reward: 0, row: 'policy_time' });
    const limited = facts({ exit_status: 'turn_limit' });
    expect(decideReward(limited, { on_limit: 'zero' })).toMatchObject({ reward: 0, row: 'turn_limit' });
    expect(decideReward(facts({ cut_by_token_limit: true }), { on_limit: 'none' })).toMatchObject({
      outcome: 'judged',
      reward: null,
      row: 'token_limit',
    });
    expect(decideReward(limited, { turn_limit: 'grade', on_limit: 'zero' })).toMatchObject({ reward: 1 });
  });

  test('unknown and fixed rows are refused by name', () => {
    expect(() => checkOverrides({ trun_limit: 'zero' })).toThrow(/trun_limit.*possible: on_limit/);
    expect(() => checkOverrides({ resolved: 'zero' })).toThrow(/fixed/);
    expect(() =>
      checkOverrides({ on_limit: 'zero', empty_patch: 'none' } as Record<string, RewardChoice>),
    ).not.toThrow();
  });
});

describe('needsEvaluation', () => {
  test.each([
    ['a patch', facts(notRun), {}, {}, true],
    ['evaluation off', facts({ ...notRun, ungraded: true }), {}, { evaluateEmpty: true }, false],
    ['empty patch', facts({ ...notRun, patch_state: 'empty' }), {}, {}, false],
    [
      'empty patch in a preflight',
      facts({ ...notRun, patch_state: 'empty' }),
      {},
      { evaluateEmpty: true },
      true,
    ],
    [
      'empty patch, graded by choice',
      facts({ ...notRun, patch_state: 'empty' }),
      { empty_patch: 'grade' },
      {},
      true,
    ],
    ['too large', facts({ ...notRun, patch_state: 'too_large' }), {}, { evaluateEmpty: true }, false],
    ['turn limit', facts({ ...notRun, exit_status: 'turn_limit' }), {}, {}, true],
    ['turn limit, zero', facts({ ...notRun, exit_status: 'turn_limit' }), { on_limit: 'zero' }, {}, false],
    ['malformed answers', facts({ ...notRun, exit_status: 'format_limit' }), {}, {}, false],
    [
      'malformed, graded',
      facts({ ...notRun, exit_status: 'format_limit' }),
      { format_limit: 'grade' },
      {},
      true,
    ],
    [
      'waited for a slow policy',
      facts({ ...notRun, exit_status: 'time_limit', policy_share: 0.9, policy_pace: 0.1 }),
      {},
      {},
      false,
    ],
    [
      'waited for a policy that thought',
      facts({ ...notRun, exit_status: 'time_limit', policy_share: 0.9, training: true }),
      {},
      {},
      true,
    ],
    [
      'thought, and nothing to evaluate',
      facts({
        ...{ ...notRun, exit_status: 'time_limit', patch_state: 'empty' },
        ...{ policy_share: 0.9, training: true },
      }),
      {},
      {},
      false,
    ],
    [
      'thought, no reward by choice',
      facts({ ...notRun, exit_status: 'time_limit', policy_share: 0.9, training: true }),
      { policy_time: 'none' },
      {},
      false,
    ],
    ['killed sandbox', facts({ ...notRun, sandbox_killed: true }), {}, {}, false],
  ] as const)('%s', (_name, given, overrides, options, expected) => {
    expect(needsEvaluation(given, overrides, options)).toBe(expected);
  });
});

describe('a score', () => {
  const parts = { tests: 0.25, style: 0.5 };

  test('is the reward, with its parts; resolved stays unknown where the grader gives no verdict', () => {
    expect(decideReward(facts({ score: 0.75, resolved: null, reward_components: parts }))).toEqual({
      ...{ outcome: 'judged', reward: 0.75, resolved: null, reward_components: parts },
      ...{ row: 'scored', failure: null },
    });
    expect(decideReward(facts({ score: 0.75, resolved: true })).resolved).toBe(true);
  });

  test('that does not decide leaves no parts behind', () => {
    const forged = facts({ score: 1, resolved: null, reward_components: parts, trust: 'forged' });
    expect(decideReward(forged)).toMatchObject({ reward: 0, resolved: false });
    expect(decideReward(forged)).not.toHaveProperty('reward_components');
    const limited = facts({ score: 1, resolved: null, exit_status: 'turn_limit', reward_components: parts });
    expect(decideReward(limited, { on_limit: 'zero' })).toMatchObject({ reward: 0, row: 'turn_limit' });
    expect(decideReward(limited, { on_limit: 'none' })).toMatchObject({ reward: null, row: 'turn_limit' });
  });

  test.each([
    ['nothing', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['more than the bound', 1000.5],
    ['less than the bound', -1e9],
  ])('of %s is refused by the record', (_name, score) => {
    expect(Score.safeParse(score).success).toBe(false);
    expect(RewardComponents.safeParse({ part: score }).success).toBe(false);
  });

  test('has a bounded number of parts with plain names', () => {
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`p${index}`, 0]));
    expect(RewardComponents.safeParse(many).success).toBe(false);
    expect(RewardComponents.safeParse({ 'a\nb': 0 }).success).toBe(false);
    expect(RewardComponents.safeParse({ ['x'.repeat(65)]: 0 }).success).toBe(false);
    expect(RewardComponents.safeParse({ 'unit tests/fast': 0.5 }).success).toBe(true);
  });
});

/** A run that began with another table cannot continue, so a change of the hash must be intended. */
test('the hash of the reward table changes with any row', () => {
  expect(REWARD_TABLE).toEqual({ name: 'swefarm-reward-1', hash: '4e2508dbfee09e55' });
});
