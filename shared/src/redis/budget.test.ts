import { describe, expect, test } from 'vitest';
import { FAILURES, type FailureClass } from '../failures/failure.ts';
import { decide } from './budget.ts';
import type { JournalEntry } from './journal.ts';

/** Each word is a class, `drained`, `done` or `crash`; the worker is named after the position by default. */
function journal(
  ...ends: (FailureClass | 'drained' | 'done' | 'crash' | [string, 'crash'])[]
): JournalEntry[] {
  return ends.map((end, index) => {
    const [worker, what] = Array.isArray(end) ? end : [`w${index}`, end];
    const crashed = what === 'crash';
    return {
      attempt: index + 1,
      claim: `c${index}`,
      worker,
      node: `n-${worker}`,
      claimed_at: 1,
      ended_at: crashed ? null : 2,
      end: crashed ? null : { stage: null, class: what as FailureClass, cause: `cause ${index}` },
    };
  });
}

const run = (...ends: Parameters<typeof journal>) => decide(journal(...ends), 1);

describe('budgets', () => {
  test('the first attempt runs immediately, anywhere', () => {
    expect(run()).toEqual({ action: 'run', delayMs: 0, avoidWorkers: [], avoidNodes: [] });
  });

  test.each(Object.entries(FAILURES).filter(([name]) => name !== 'lost'))(
    '%s is given up after exactly its budget',
    (name, rule) => {
      const times = (count: number) => Array.from({ length: count }, () => name as FailureClass);
      if (rule.budget > 1) expect(run(...times(rule.budget - 1)).action).toBe('run');
      expect(run(...times(rule.budget))).toEqual({
        action: 'give_up',
        parked: false,
        failure: {
          stage: rule.stage,
          class: name,
          message: `cause ${rule.budget - 1}`,
          attempts: rule.budget,
        },
      });
    },
  );

  test('budgets are per class', () => {
    expect(run('image_pull', 'image_pull', 'sandbox_start', 'sandbox_start', 'policy_silent').action).toBe(
      'run',
    );
  });

  test('the class that used up its budget first is given up, whatever failed before and after', () => {
    const { artifact_store: later } = FAILURES;
    const failures = Array.from({ length: later.budget - 1 }, () => 'artifact_store' as const);
    expect(run('artifact_store', 'image_pull', 'image_pull', 'image_pull', ...failures)).toMatchObject({
      action: 'give_up',
      failure: { class: 'image_pull' },
    });
  });

  test('drained attempts do not count', () => {
    expect(run('drained', 'drained', 'drained', 'drained')).toMatchObject({ action: 'run', delayMs: 0 });
    expect(run('image_pull', 'drained', 'image_pull', 'drained', 'drained').action).toBe('run');
  });
});

describe('crashes', () => {
  test('three consecutive crashes on three workers park the rollout', () => {
    expect(run('crash', 'crash').action).toBe('run');
    expect(run('crash', 'drained', 'crash', 'crash')).toMatchObject({
      action: 'give_up',
      parked: true,
      failure: { stage: 'worker', class: 'lost', attempts: 3 },
    });
  });

  test('crashes that are not consecutive, or of one worker, do not park it', () => {
    expect(run('crash', 'crash', 'image_pull', 'crash').action).toBe('run');
    expect(run(['a', 'crash'], ['a', 'crash'], ['b', 'crash'], ['a', 'crash']).action).toBe('run');
  });

  test('nine crashes park it also on one worker', () => {
    const crashes = (count: number) => Array.from({ length: count }, (): [string, 'crash'] => ['a', 'crash']);
    expect(run(...crashes(8)).action).toBe('run');
    expect(run(...crashes(9))).toMatchObject({ action: 'give_up', parked: true });
  });
});

describe('when and where next', () => {
  test('delays double up to a minute, at random; a crash has no delay', () => {
    const delay = (count: number, random: number) =>
      (
        decide(journal(...Array.from({ length: count }, () => 'policy_unreachable' as const)), random) as {
          delayMs: number;
        }
      ).delayMs;
    expect([1, 2, 3, 4].map((count) => delay(count, 1))).toEqual([2000, 4000, 8000, 16_000]);
    expect(delay(1, 0)).toBe(1000);
    expect(run('image_pull', 'crash')).toMatchObject({ delayMs: 0 });
  });

  test('only failures of rule elsewhere name workers and nodes to avoid', () => {
    expect(run('image_pull')).toMatchObject({ avoidWorkers: [], avoidNodes: [] });
    expect(run('node_disk', 'crash')).toMatchObject({
      avoidWorkers: ['w0', 'w1'],
      avoidNodes: ['n-w0', 'n-w1'],
    });
  });
});
