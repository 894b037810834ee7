import type { RewardFacts } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { describe, expect, test } from 'vitest';
import { weightWarnings } from './parts.ts';
import { decideReward, needsEvaluation } from './reward.ts';

const tests = (success: number, failure: number) => ({ success, failure });
/** Facts of a rollout of 10 turns that resolves 2 FAIL_TO_PASS and 4 PASS_TO_PASS tests. */
const facts = (changes: Partial<RewardFacts> = {}): RewardFacts =>
  bareFacts({
    ...{ fail_to_pass: tests(2, 0), pass_to_pass: tests(4, 0) },
    ...{ turns: 10, malformed_answers: 0, sequence_tokens: 1000 },
    ...changes,
  });
const WEIGHTS =
  'resolved=1,f2p=0.5,p2p=0.2,format=-0.1,invalid_patch=-0.3,length=soft:2000:4000,turns=-0.01,submitted=0.05';
const notRun = { evaluation: 'not_run', resolved: null, fail_to_pass: undefined } as const;
const unresolved = { resolved: false } as const;

/** Facts → the reward by WEIGHTS, computed by hand. */
const TABLE: [name: string, changes: Partial<RewardFacts>, reward: number | null][] = [
  // 1 + 0.5 + 0.2 - 10 × 0.01 + 0.05
  ['resolved', {}, 1.65],
  // 0.5 × 1/2 + 0.2 - 0.1 + 0.05
  ['half of the tests', { ...unresolved, fail_to_pass: tests(1, 1) }, 0.4],
  // 0.2 × 3/4 - 0.1 + 0.05
  [
    'nothing fixed, one test broken',
    { ...unresolved, fail_to_pass: tests(0, 2), pass_to_pass: tests(3, 1) },
    0.1,
  ],
  // 1.65 - 0.1 × 3/10
  ['three malformed answers', { malformed_answers: 3 }, 1.62],
  // 1.65 - 1 × 1000/2000
  ['in the middle of the soft band', { sequence_tokens: 3000 }, 1.15],
  ['at its start', { sequence_tokens: 2000 }, 1.65],
  ['beyond its end', { sequence_tokens: 9000 }, 0.65],
  // 1.65 - 0.05
  ['resolved at the turn limit', { exit_status: 'turn_limit' }, 1.6],
  // - 0.1 - 0.1
  ['ended by malformed answers', { ...notRun, exit_status: 'format_limit', malformed_answers: 3 }, -0.2],
  // - 0.3 - 0.1 + 0.05
  ['too large', { ...notRun, patch_state: 'too_large' }, -0.35],
  ['does not apply', { ...notRun, patch_state: 'not_applied', patch_origin: 'submission' }, -0.35],
  // - 0.1 + 0.05
  ['empty patch', { ...notRun, patch_state: 'empty' }, -0.05],
  ['empty patch, evaluated', { ...unresolved, patch_state: 'empty', fail_to_pass: tests(0, 2) }, -0.05],
  ['tests killed', { evaluation: 'sandbox_killed', ...unresolved }, -0.05],
  // Only - 0.1 of the turns: a forged verdict gains nothing.
  ['forged', { trust: 'forged' }, -0.1],
  ['tests without names', { fail_to_pass: null, pass_to_pass: null }, 0.95],
  ['no PASS_TO_PASS tests', { pass_to_pass: tests(0, 0) }, 1.45],
  [
    'patch without an agent',
    { exit_status: null, turns: null, malformed_answers: null, sequence_tokens: null },
    1.7,
  ],
  ['score', { score: 0.4, resolved: null, fail_to_pass: null, pass_to_pass: null }, 0.35],
  ['no reward', { ungraded: true }, null],
  ['masked', { exit_status: 'time_limit', policy_share: 1, training: true }, null],
  ['failure', { evaluation: 'timed_out', resolved: null }, null],
];

describe('weights', () => {
  test.each(TABLE)('%s', (_name, changes, reward) => {
    const weighted = decideReward(facts(changes), {}, WEIGHTS);
    expect(weighted.reward).toBe(reward);
    const plain = decideReward(facts(changes));
    expect(weighted).toMatchObject({ row: plain.row, outcome: plain.outcome, resolved: plain.resolved });
    expect(weighted.reward_parts).toEqual(
      plain.reward_parts && { ...plain.reward_parts, ...weighted.reward_parts },
    );
    const sum = Object.values(weighted.reward_components ?? {}).reduce((total, one) => total + one, 0);
    expect(sum).toBeCloseTo(reward ?? 0, 9);
  });

  test('parts are recorded without weights, and the reward stays 1 or 0', () => {
    expect(decideReward(facts({ ...unresolved, fail_to_pass: tests(1, 2) }))).toMatchObject({
      reward: 0,
      reward_parts: {
        ...{ resolved: 0, f2p: 0.3333, p2p: 1, format: 0, invalid_patch: 0, turns: 10, submitted: 1 },
      },
    });
    expect(decideReward(facts(), {}, 'resolved=1').reward).toBe(1);
    expect(decideReward(facts({ ungraded: true }))).not.toHaveProperty('reward_parts');
  });

  test('an override of forged rows lets a forgery earn by its parts', () => {
    expect(decideReward(facts({ trust: 'forged' }), { forged: 'grade' }, WEIGHTS).reward).toBe(1.65);
    // Another row decides first, and the verdict is still forged.
    const limited = facts({ trust: 'forged', exit_status: 'turn_limit' });
    expect(decideReward(limited, { on_limit: 'zero' }, 'turns=1,submitted=1,format=-1').reward).toBe(0);
  });

  test('a row that an override sets to zero counts no tests', () => {
    const limited = facts({ exit_status: 'turn_limit' });
    const overrides = { on_limit: 'zero' } as const;
    expect(needsEvaluation(limited, overrides)).toBe(false);
    const ran = decideReward(limited, overrides, WEIGHTS);
    expect(ran).toEqual({ ...decideReward({ ...limited, ...notRun }, overrides, WEIGHTS), resolved: true });
    expect(ran.reward).toBe(-0.1);
  });

  test('facts that an older version did not record are named', () => {
    expect(decideReward(bareFacts(), {}, 'resolved=1,f2p=1,turns=1,format=1').missing).toEqual([
      ...['fail_to_pass', 'turns', 'malformed_answers'],
    ]);
    expect(decideReward(bareFacts(), {}, 'resolved=1').missing).toBeUndefined();
  });

  test('one component is at most the bound of a score', () => {
    expect(decideReward(facts({ turns: 100_000 }), {}, 'turns=1').reward).toBe(1000);
  });
});

test('submit warns about weights that reward nothing', () => {
  expect(weightWarnings(null)).toEqual([]);
  expect(weightWarnings('resolved=1,f2p=0.5,format=-0.1,length=soft:24k:32k')).toEqual([]);
  expect(weightWarnings('resolved=1,p2p=0.1')).toEqual([
    expect.stringMatching(/a patch that fixes nothing.* earns 0\.1: lower the weights of p2p/),
  ]);
  expect(weightWarnings('resolved=1,submitted=0.1')).toEqual([
    expect.stringMatching(/an empty patch .* earns 0\.1/),
  ]);
  expect(weightWarnings('p2p=1')).toEqual([
    expect.stringMatching(/fixes nothing/),
    expect.stringMatching(/a resolved rollout earns 1, and one that fixes nothing 1: add resolved=1/),
  ]);
});
