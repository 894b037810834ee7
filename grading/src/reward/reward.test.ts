import { type RewardChoice, RewardComponents, type RewardFacts, Score } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import { checkOverrides, decideReward, needsEvaluation, type RewardOverrides } from './reward.ts';
import { REWARD_ROWS, REWARD_TABLE } from './table.ts';

const facts = (changes: Partial<RewardFacts> = {}): RewardFacts =>
  bareFacts({ policy_share: 0.2, ...changes });
const notRun = { evaluation: 'not_run', resolved: null } as const;

type Gives = number | null | string;
type Case = { row: string; facts: RewardFacts; gives: Gives };

const unable = { evaluation: 'tests_cannot_start', resolved: false } as const;
const parserFailed = { evaluation: 'parser_failed', resolved: false } as const;
const timedOut = { evaluation: 'timed_out', resolved: null } as const;
const late = { exit_status: 'time_limit', policy_share: 0.9 } as const;
const thinking = { ...late, training: true } as const;

/** One line per row of the table: facts that lead to it, and a reward or the class of the failure. */
const TABLE: [row: string, changes: Partial<RewardFacts>, gives: Gives][] = [
  ['ungraded', { ...notRun, ungraded: true }, null],
  ['sandbox_killed', { ...notRun, sandbox_killed: true }, 0],
  ['policy_slow', { exit_status: 'time_limit', policy_share: 0.5, policy_pace: 0.24 }, 'policy_slow'],
  ['policy_slow', { ...notRun, ...thinking, policy_pace: 0 }, 'policy_slow'],
  // As far as the facts show, the model was thinking.
  ['policy_time', { ...thinking, policy_pace: 0.25 }, null],
  ['policy_time', { ...thinking, policy_pace: 1 }, null],
  ['policy_time', { ...thinking, policy_pace: null }, null],
  ['policy_time', { ...notRun, ...thinking, patch_state: 'empty', policy_share: 0.5, policy_pace: 1 }, null],
  ['resolved', { ...late, policy_pace: 1, training: false }, 1],
  // Facts from before pace and kind were recorded.
  ['resolved', late, 1],
  ['resolved', { ...thinking, policy_share: 0.49, policy_pace: 0.1 }, 1],
  ['format_limit', { ...notRun, exit_status: 'format_limit' }, 0],
  ['resolved', { exit_status: 'turn_limit' }, 1],
  ['resolved', { exit_status: 'context_limit' }, 1],
  ['resolved', { exit_status: 'time_limit', policy_share: 0.49 }, 1],
  ['unresolved', { cut_by_token_limit: true, resolved: false }, 0],
  ['empty_patch', { ...notRun, patch_state: 'empty' }, 0],
  ['empty_patch', { ...notRun, patch_state: 'none' }, 0],
  ['empty_patch', { patch_state: 'empty', resolved: false }, 0],
  ['patch_too_large', { ...notRun, patch_state: 'too_large' }, 0],
  ['patch_not_applied', { ...notRun, patch_state: 'not_applied', patch_origin: 'submission' }, 0],
  ['patch_not_applied', { ...notRun, patch_state: 'not_applied', patch_origin: 'given' }, 0],
  ['patch_broken', { ...notRun, patch_state: 'not_applied' }, 0],
  ['forged', { trust: 'forged' }, 0],
  ['evaluation_killed', { evaluation: 'sandbox_killed', resolved: false }, 0],
  ['timeout', { ...timedOut, gold_time_share: 0.4 }, 0],
  ['timeout_unexplained', timedOut, 'evaluation_timeout'],
  ['timeout_unexplained', { ...timedOut, gold_time_share: 0.5 }, 'evaluation_timeout'],
  ['timeout_of_patch', { ...timedOut, resolved: false, control_time_share: 0.4 }, 0],
  ['timeout_unexplained', { ...timedOut, resolved: false, control_time_share: 0.5 }, 'evaluation_timeout'],
  ['timeout_unexplained', { ...timedOut, resolved: false, control_time_share: 1 }, 'evaluation_timeout'],
  ['timeout_unexplained', { ...timedOut, resolved: false, control_time_share: null }, 'evaluation_timeout'],
  ['tests_broken', { ...unable, gold_healthy: true }, 0],
  ['tests_cannot_start', unable, 'tests_cannot_start'],
  ['tests_cannot_start', { ...unable, gold_healthy: false }, 'tests_cannot_start'],
  ['tests_broken_by_patch', { ...unable, gold_healthy: null, tests_start: true }, 0],
  ['tests_broken_by_patch', { ...unable, gold_healthy: false, tests_start: true }, 0],
  ['tests_cannot_start', { ...unable, tests_start: null }, 'tests_cannot_start'],
  ['tests_cannot_start', { ...unable, tests_start: false }, 'tests_cannot_start'],
  ['parser_broken_by_patch', { ...parserFailed, tests_start: true }, 0],
  ['parser_broken', { ...parserFailed, gold_healthy: true }, 0],
  ['parser_failed', { ...parserFailed, gold_healthy: false }, 'parser_failed'],
  ['parser_failed', { ...parserFailed, gold_healthy: null }, 'parser_failed'],
  ['not_evaluated', notRun, 'evaluation_lost'],
  ['resolved', { trust: 'suspicious' }, 1],
  ['unresolved', { resolved: false }, 0],
  // If the grader gives a number, the number is the reward. The verdict does not change.
  ['scored', { score: 0.25, resolved: null }, 0.25],
  ['scored', { score: 1, resolved: null }, 1],
  ['scored', { score: 0, resolved: null }, 0],
  ['scored', { score: -2.5, resolved: null }, -2.5],
  ['scored', { score: 0.5, resolved: false }, 0.5],
  ['scored', { score: 0.5, exit_status: 'turn_limit' }, 0.5],
  ['forged', { score: 1, resolved: null, trust: 'forged' }, 0],
  ['tests_cannot_start', { ...unable, score: null }, 'tests_cannot_start'],
];
const CASES: Case[] = TABLE.map(([row, changes, gives]) => ({ row, facts: facts(changes), gives }));

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

  test('every row has a case or passes facts to the next rows', () => {
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
  /** Returns a case that the row matches: the case of the table, or a case with the limit that has the name of the row. */
  const meeting = (name: string): Case => {
    const own = CASES.find((entry) => entry.row === name);
    if (own) return own;
    if (name === 'token_limit') return { row: name, facts: facts({ cut_by_token_limit: true }), gives: 1 };
    return { row: name, facts: facts({ exit_status: name as RewardFacts['exit_status'] }), gives: 1 };
  };

  test.each(free.map((row) => row.row))('%s: zero', (name) => {
    const { facts: given } = meeting(name);
    expect(decideReward(given, { [name]: 'zero' })).toEqual({
      reward_parts: expect.objectContaining({ resolved: 0 }),
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

  test('on_limit applies to all limits, and a single row overrides it', () => {
    const thought = facts(thinking);
    expect(decideReward(thought, { on_limit: 'grade' })).toMatchObject({ reward: 1, row: 'resolved' });
    expect(decideReward(thought, { on_limit: 'zero' })).toMatchObject({ reward: 0, row: 'policy_time' });
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
  test.each<[string, Partial<RewardFacts>, RewardOverrides, { evaluateEmpty?: boolean }, boolean]>([
    ['a patch', {}, {}, {}, true],
    ['evaluation off', { ungraded: true }, {}, { evaluateEmpty: true }, false],
    ['empty patch', { patch_state: 'empty' }, {}, {}, false],
    ['empty patch in a preflight', { patch_state: 'empty' }, {}, { evaluateEmpty: true }, true],
    ['empty patch, graded by choice', { patch_state: 'empty' }, { empty_patch: 'grade' }, {}, true],
    ['too large', { patch_state: 'too_large' }, {}, { evaluateEmpty: true }, false],
    ['turn limit', { exit_status: 'turn_limit' }, {}, {}, true],
    ['turn limit, zero', { exit_status: 'turn_limit' }, { on_limit: 'zero' }, {}, false],
    ['malformed answers', { exit_status: 'format_limit' }, {}, {}, false],
    ['malformed, graded', { exit_status: 'format_limit' }, { format_limit: 'grade' }, {}, true],
    ['waited for a slow policy', { ...late, policy_pace: 0.1 }, {}, {}, false],
    ['waited for a policy that thought', thinking, {}, {}, true],
    ['thought, and nothing to evaluate', { ...thinking, patch_state: 'empty' }, {}, {}, false],
    ['thought, no reward by choice', thinking, { policy_time: 'none' }, {}, false],
    ['killed sandbox', { sandbox_killed: true }, {}, {}, false],
  ])('%s', (_name, changes, overrides, options, expected) => {
    expect(needsEvaluation(facts({ ...notRun, ...changes }), overrides, options)).toBe(expected);
  });
});

describe('a score', () => {
  const parts = { tests: 0.25, style: 0.5 };

  test('is the reward, with its parts; without a verdict, resolved is unknown', () => {
    expect(decideReward(facts({ score: 0.75, resolved: null, reward_components: parts }))).toEqual({
      ...{ outcome: 'judged', reward: 0.75, resolved: null, reward_components: parts },
      ...{ row: 'scored', failure: null },
      reward_parts: { resolved: 0.75, invalid_patch: 0, submitted: 1 },
    });
    expect(decideReward(facts({ score: 0.75, resolved: true })).resolved).toBe(true);
  });

  test('that does not decide has no parts', () => {
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
  expect(REWARD_TABLE).toEqual({ name: 'swefarm-reward-2', hash: '400b37e91910175b' });
});
