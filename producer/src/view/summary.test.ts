import { middle, outputLine, summarise } from '@swefarm/trajectories';
import { aFailure, aLine } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { renderSummary } from './summary.ts';

const lines = [
  aLine(),
  aLine({ rollout_index: 1, resolved: false, reward: 0, turns: 20, exit_status: 'turn_limit' }),
  outputLine(aFailure({ rollout_index: 2 }), { patch: null, report: null }),
  aLine({ instance_id: 'c__d-2', outcome: 'cancelled', resolved: null, reward: null }),
];

test.each([80, 100, 160])('the table fits %d columns and names every end', (width) => {
  const ids = ['a__b-1', 'c__d-2', 'a-very-long-organisation__with-a-long-name-123456'];
  const text = renderSummary(summarise(ids, lines), width);
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(width);
  expect(text).toContain('1/2');
  expect(text).toContain('0.50');
  expect(text.replaceAll(/[│\s]+/g, ' ')).toMatch(/policy_unreachable/);
  expect(text).toContain('all');
});

test('long ids keep their ends', () => {
  expect(middle('django__django-12345', 10)).toBe('dja…-12345');
  expect(middle('short', 10)).toBe('short');
});
