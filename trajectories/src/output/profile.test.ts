import { describe, expect, test } from 'vitest';
import { passAt, profileOf, type RolloutFact } from './profile.ts';

const fact = (over: Partial<RolloutFact>): RolloutFact => ({
  group: 'a',
  repo: 'x/y',
  outcome: 'judged',
  resolved: false,
  reward: 0,
  turns: 10,
  patch_applied: true,
  evaluation_error: false,
  failure: null,
  cancelled: null,
  ...over,
});
const won = (over: Partial<RolloutFact> = {}) => fact({ resolved: true, reward: 1, ...over });
const lost = (over: Partial<RolloutFact> = {}) =>
  fact({ outcome: 'failed', reward: null, patch_applied: false, failure: 'sandbox_lost', ...over });

describe('pass@k', () => {
  test.each([
    [4, 0, 2, 0],
    [4, 4, 2, 1],
    [4, 1, 1, 0.25],
    [4, 1, 2, 0.5],
    [5, 2, 3, 0.9],
    [4, 3, 2, 1],
  ])('n=%i c=%i k=%i', (n, c, k, value) => {
    expect(passAt(n, c, k)).toBeCloseTo(value, 12);
  });

  test('agrees with counting all draws', () => {
    for (let n = 1; n <= 7; n++)
      for (let c = 0; c <= n; c++)
        for (let k = 1; k <= n; k++) {
          const draws = Array.from({ length: 2 ** n }, (_, bits) => bits).filter(
            (bits) => bits.toString(2).replaceAll('0', '').length === k,
          );
          const right = draws.filter((bits) => (bits & (2 ** c - 1)) !== 0).length;
          expect(passAt(n, c, k)).toBeCloseTo(right / draws.length, 12);
        }
  });
});

test('unjudged rollouts count in no rate of success, and are listed by cause', () => {
  const profile = profileOf([won(), fact({}), lost(), lost({ failure: 'policy_silent' })]);
  expect(profile).toMatchObject({
    total: 4,
    judged: 2,
    resolved: 1,
    accuracy: 0.5,
    mean_reward: 0.5,
    mean_turns: 10,
    patch_applied_rate: 0.5,
    pass_at: { 1: 0.5, 2: 1 },
    pass_at_1_avg_of_k: { k: 2, value: 0.5 },
    failures: { policy_silent: 1, sandbox_lost: 1 },
    groups: { total: 1, complete: 0, size: 4 },
  });
});

test('a cancelled rollout is no failure and counts in no rate', () => {
  const cancelled = fact({
    outcome: 'cancelled',
    reward: null,
    patch_applied: false,
    turns: 30,
    cancelled: 'early_stop',
  });
  expect(profileOf([won(), fact({}), cancelled])).toMatchObject({
    total: 3,
    judged: 2,
    mean_turns: 10,
    mean_turns_cancelled: 30,
    patch_applied_rate: 1,
    failures: {},
    cancelled: { early_stop: 1 },
  });
});

test('groups have equal weights; without rollouts there are no rates', () => {
  const b = { group: 'b', repo: 'p/q' };
  const profile = profileOf([won(), won(), fact(b), won(b), fact(b), fact(b)], 2);
  expect(profile.pass_at_1_avg_of_k).toEqual({ k: 4, value: (1 + 0.25) / 2 });
  // Only group b has four verdicts.
  expect(profile.pass_at['4']).toBe(1);
  expect(profile.by_repository).toMatchObject({ 'p/q': { judged: 4, resolved: 1 }, 'x/y': { accuracy: 1 } });
  expect(profile.groups).toEqual({ total: 2, complete: 2, size: 2 });
  expect(profileOf([])).toMatchObject({ total: 0, accuracy: null, pass_at: {}, pass_at_1_avg_of_k: null });
});

test('a score without a verdict counts in the mean reward only', () => {
  const scored = fact({ resolved: null, reward: 0.25 });
  const alone = fact({ group: 'c', resolved: null, reward: -0.5 });
  expect(profileOf([won(), fact({}), scored, alone])).toMatchObject({
    ...{ total: 4, judged: 4, resolved: 1, scored: 2, accuracy: 0.5 },
    ...{ mean_reward: 0.1875, pass_at: { 1: 0.5, 2: 1 }, pass_at_1_avg_of_k: { k: 2, value: 0.5 } },
  });
  expect(profileOf([alone])).toMatchObject({ accuracy: null, mean_reward: -0.5, pass_at: {} });
  // A rollout that is judged without a verdict and without a reward is not scored.
  expect(profileOf([fact({ resolved: null, reward: null })])).toMatchObject({ scored: 0, judged: 1 });
});
