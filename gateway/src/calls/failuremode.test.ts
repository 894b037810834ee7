import { FAILURE_CLASSES, FAILURES } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { GymRow, unjudgedCause } from '@swefarm/trajectories';
import { aFailure, aResult } from '@swefarm/trajectories/test/result.ts';
import { describe, expect, test } from 'vitest';
import { decideEnding, type FailureMode, failureMode, honoursMask } from './failuremode.ts';

const row = (over: Record<string, unknown>) => ({
  row: GymRow.parse({ responses_create_params: {}, ...over }),
  episode: null,
});

describe('auto chooses the mode by the numbers in the row', () => {
  test.each<[string, Record<string, unknown>, FailureMode]>([
    ["Gym's collector", { _ng_task_index: 3, _ng_rollout_index: 0 }, 'collector'],
    ['SingleController at 7ea279abf, and the synchronous loop', { _rowidx: 0 }, 'nemo-rl'],
    ['a later SingleController', { _rowidx: 0, _ng_rollout_index: 0, _ng_group_id: 'g1' }, 'nemo-rl'],
    [
      'rows that a collector wrote before',
      { _rowidx: 0, _ng_rollout_index: 0, _ng_task_index: 3 },
      'nemo-rl',
    ],
    ['the asynchronous collector', { _rowidx: 5, _ng_task_index: 1 }, 'nemo-rl-sync'],
    ['a loop of its own', {}, 'nemo-rl'],
  ])('%s', (_who, fields, mode) => {
    expect(failureMode({ failures: 'auto' }, row(fields))).toBe(mode);
    expect(failureMode({ failures: 'verl-recipe' }, row(fields))).toBe('verl-recipe');
  });

  test('an episode without numbers is of a collector', () => {
    const episode = {
      episode_id: { rollout_id: 'r', attempt: 0 },
      task_id: { taskset: 't', task_id: 'i' },
    };
    expect(failureMode({ failures: 'auto' }, { ...row({}), episode })).toBe('collector');
  });
});

const told = (name: (typeof FAILURE_CLASSES)[number], mode: FailureMode, maskable = false, rollouts = 1) => {
  const { stage } = FAILURES[name];
  const cause = unjudgedCause(aFailure({ failure: { class: name, stage, message: 'x', attempts: 1 } }));
  if (!cause) throw new Error(name);
  return decideEnding(cause, mode, { maskable, rollouts });
};

/** Failures by the patch or by the instance; one failed rollout does not show which. */
const UNPROVEN: readonly string[] = ['tests_cannot_start', 'parser_failed', 'evaluation_timeout'];

describe('answers to a trainer', () => {
  test.each(FAILURE_CLASSES)('%s: repeated only if another rollout can help', (name) => {
    const notOfTheRow = ['policy_unauthorized', 'policy_model_unknown', 'bug'].includes(name);
    const helps =
      ((FAILURES[name].retryable || notOfTheRow) && FAILURES[name].stage !== 'instance') ||
      UNPROVEN.includes(name);
    expect(told(name, 'nemo-rl')).toBe(helps ? 'unavailable' : 'refused');
    expect(told(name, 'nemo-rl-sync')).toBe(helps ? 'again' : 'refused');
    expect(told(name, 'collector', true)).toBe('failure');
  });

  test('failures of the instance and its image are terminal for the collector', () => {
    const terminal = FAILURE_CLASSES.filter(
      (name) =>
        unjudgedCause(
          aFailure({ failure: { class: name, stage: FAILURES[name].stage, message: 'x', attempts: 1 } }),
        )?.terminal,
    );
    const instances = FAILURE_CLASSES.filter(
      (name) => FAILURES[name].stage === 'instance' && !UNPROVEN.includes(name),
    );
    expect(terminal.toSorted()).toEqual([...instances, 'image_not_found'].toSorted());
  });

  test.each([
    ['tests_cannot_start', { tests_start: false }, 'broken'],
    ['tests_cannot_start', { tests_start: null }, 'passing'],
    ['tests_cannot_start', {}, 'passing'],
    ['tests_cannot_start', { gold_healthy: false }, 'passing'],
    ['parser_failed', { tests_start: false }, 'broken'],
    ['parser_failed', {}, 'passing'],
    ['evaluation_timeout', { control_time_share: 1 }, 'broken'],
    ['evaluation_timeout', { control_time_share: 0.7 }, 'withheld'],
    ['evaluation_timeout', { gold_time_share: 0.7 }, 'withheld'],
    ['evaluation_timeout', { control_time_share: null }, 'passing'],
    ['evaluation_timeout', {}, 'passing'],
  ] as const)('%s is final only with evidence against the instance: %j is %s', (name, seen, kind) => {
    const { stage } = FAILURES[name];
    const failure = { class: name, stage, message: 'x', attempts: 1 };
    const cause = unjudgedCause(aFailure({ failure, facts: bareFacts(seen) }));
    expect(cause).toMatchObject({ kind, terminal: kind === 'broken' });
  });

  test('a withheld reward is a sample without weight or a refusal, never another rollout', () => {
    const cause = unjudgedCause(aResult({ reward: null, reward_row: 'turn_limit' }));
    if (!cause) throw new Error('a verdict');
    for (const mode of ['nemo-rl', 'nemo-rl-sync', 'verl-recipe'] as const) {
      expect(decideEnding(cause, mode, { maskable: true, rollouts: 1 })).toBe('masked');
      expect(decideEnding(cause, mode, { maskable: false, rollouts: 9 })).toBe('refused');
    }
  });

  test('a failed conversation is answered after its second failure, if the mask is honoured', () => {
    expect(told('policy_silent', 'nemo-rl-sync', true, 1)).toBe('again');
    expect(told('policy_silent', 'nemo-rl-sync', true, 2)).toBe('masked');
    expect(told('policy_silent', 'nemo-rl-sync', false, 2)).toBe('again');
    expect(told('policy_silent', 'nemo-rl', true, 2)).toBe('unavailable');
  });

  test('masks are honoured by mode, unless the operator decides', () => {
    const known = (['nemo-rl', 'nemo-rl-sync', 'verl-recipe'] as const).map((mode) =>
      honoursMask({ honoursMask: null }, mode),
    );
    expect(known).toEqual([false, true, false]);
    expect(honoursMask({ honoursMask: true }, 'nemo-rl')).toBe(true);
    expect(honoursMask({ honoursMask: false }, 'nemo-rl-sync')).toBe(false);
  });
});
