import { expect, test } from 'vitest';
import { countersOf } from '../redis/counters.ts';
import type { Result } from './result.ts';
import { successOf } from './success.ts';

const judged = { outcome: 'judged', resolved: true, reward: 1 } as const;

test('a success is resolved and has a reward above 0', () => {
  expect(successOf(judged)).toBe(true);
  expect(successOf({ ...judged, reward: 0.4 })).toBe(true);
  expect(successOf({ ...judged, reward: 0 })).toBe(false);
  expect(successOf({ ...judged, reward: null })).toBe(false);
  expect(successOf({ ...judged, resolved: false, reward: 0 })).toBe(false);
  expect(successOf({ ...judged, resolved: null })).toBe(null);
  expect(successOf({ outcome: 'failed', resolved: null, reward: null })).toBe(null);
});

test('weights of other parts change no success', () => {
  const weighted = (reward: number, part: number) =>
    successOf({ ...judged, reward, reward_parts: { resolved: part, submitted: 1 } });
  expect(weighted(-0.5, 1)).toBe(true);
  // A forged verdict, or a row that an override sets to zero.
  expect(weighted(0.5, 0)).toBe(false);
});

test('the counters of a run count a forged result among the unresolved ones', () => {
  const counted = (reward: number): Record<string, number> =>
    Object.fromEntries(
      countersOf({
        ...{ ...judged, reward, family: 'swebench', attempt: 1, turns: 1, exit_status: null },
        ...{ failure: null, facts: null, tokens: { prompt: 1, completion: 1 }, seconds: { total: 1 } },
      } as Result),
    );
  expect(counted(1)).toMatchObject({ resolved: 1, 'family:swebench:resolved': 1 });
  expect(counted(0)).not.toHaveProperty('resolved');
  expect(counted(0)).toMatchObject({ 'family:swebench:unresolved': 1 });
});
