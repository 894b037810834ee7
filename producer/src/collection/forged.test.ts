/** Tests that filters, collections and reports count a forged or unrewarded verdict as no success. */
import { bareFacts } from '@swefarm/testkit';
import {
  analyse,
  chooseRollouts,
  factOf,
  lineSummaryOf,
  profileOf,
  renderMarkdown,
  renderReport,
} from '@swefarm/trajectories';
import { aLine } from '@swefarm/trajectories/test/result.ts';
import { expect, test } from 'vitest';
import { Feeder } from './feeder.ts';

const forged = aLine({ reward: 0, reward_row: 'forged', facts: bareFacts({ trust: 'forged' }) }, 'diff');
const masked = aLine({ rollout_id: 'r1.a__b-1.1', reward: null, reward_row: 'policy_time' }, 'diff');
const honest = aLine({ rollout_id: 'r1.a__b-1.2', rollout_index: 2 }, 'diff');

test('filters for resolved rollouts drop forged and unrewarded ones', async () => {
  const source = {
    name: 'x',
    record: null,
    async *lines() {
      yield* [forged, masked, honest];
    },
    artifact: async () => null,
  };
  const { chosen, dropped } = await chooseRollouts([source], {
    ...{ filters: { onlyResolved: true }, prefer: 'first', lines: 'main', seed: 0 },
  });
  expect([...chosen.keys()]).toEqual([honest.rollout_id]);
  expect([...dropped]).toEqual([['resolved without a reward', 2]]);
});

test('a collection goes on past a forged success', () => {
  const rules = {
    ...{ runId: 'r1', instanceIds: ['a__b-1'], perInstance: 8, untilResolved: 1, inFlight: null, only: null },
    ...{ budget: { tokens: null, cost: null, seconds: null }, costOf: () => 0 },
  };
  expect(new Feeder(rules, [lineSummaryOf(forged)]).next()).toEqual(['r1.a__b-1.1']);
  expect(new Feeder(rules, [lineSummaryOf(honest)]).next()).toEqual([]);
});

test('reports count successes and show the official verdict beside them', () => {
  const facts = [forged, masked, honest].map((line) => factOf(line));
  const profile = profileOf(facts);
  expect(profile).toMatchObject({ resolved: 1, resolved_officially: 3, accuracy: 1 / 3 });
  expect(profile.pass_at['1']).toBeCloseTo(1 / 3);
  const analysis = analyse(facts, [1], { resamples: 10, seed: 0 });
  expect(analysis.accuracy_interval?.value).toBeCloseTo(1 / 3);
  expect(analysis.repositories['a/b']).toMatchObject({ resolved: 1, resolved_officially: 3 });
  const report = { ...profile, expected: null, analysis };
  expect(renderReport(report, [1])).toMatch(/resolved +1\n *resolved officially +3\n/);
  expect(renderMarkdown(report, 'x')).toContain('| resolved | resolved officially |');
});
