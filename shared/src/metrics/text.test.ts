import { expect, test } from 'vitest';
import { OUTCOME_METRICS } from './outcomes.ts';
import { family, renderFamilies } from './text.ts';
import { outcomeFamilies, versionFamilies } from './totals.ts';

const render = (sums: Record<string, number>): string =>
  renderFamilies(outcomeFamilies(new Map([['training', sums]])));

test('a family has help, type and points with escaped labels', () => {
  const text = renderFamilies([
    family(OUTCOME_METRICS.versionTurns, [
      { labels: { kind: 'training', version: 'a"b\\c\nd' }, value: 3.5 },
    ]),
    family(OUTCOME_METRICS.refills, []),
  ]);
  expect(text).toBe(
    '# HELP swefarm_version_turns_total Turns of judged rollouts, by policy version.\n' +
      '# TYPE swefarm_version_turns_total counter\n' +
      'swefarm_version_turns_total{kind="training",version="a\\"b\\\\c\\nd"} 3.5\n',
  );
});

test('histograms become cumulative, with +Inf equal to the count', () => {
  const text = render({ 'turns_in:2': 3, 'turns_in:20': 1, 'turns_in:+Inf': 2, turns_sum: 500 });
  const turns = text.split('\n').filter((line) => /^swefarm_rollout_turns_\w+{kind="training"/.test(line));
  expect(turns.map((line) => line.replace('swefarm_rollout_turns_', ''))).toEqual([
    ...Object.entries({ 1: 0, 2: 3, 5: 3, 10: 3, 20: 4, 30: 4, 50: 4, 75: 4, 100: 4, 150: 4 }).map(
      ([le, count]) => `bucket{kind="training",le="${le}"} ${count}`,
    ),
    'bucket{kind="training",le="+Inf"} 6',
    'sum{kind="training"} 500',
    'count{kind="training"} 6',
  ]);
});

test('known label values are exposed at zero, other counted values too', () => {
  expect(render({})).toContain('swefarm_rollouts_total{kind="validation",outcome="failed"} 0\n');
  expect(render({})).toContain(
    'swefarm_rollouts_failed_total{kind="training",stage="policy",class="policy_slow"} 0\n',
  );
  const counted = render({ 'failure:policy_slow': 2, 'cancelled:moon': 1, 'attempt:lost': 4 });
  expect(counted).toContain('{kind="training",stage="policy",class="policy_slow"} 2\n');
  expect(counted).toContain('swefarm_rollouts_cancelled_total{kind="training",reason="moon"} 1\n');
  expect(counted).toContain('swefarm_attempts_total{kind="training",class="lost"} 4\n');
});

test('known dataset families have all ends at zero, others when they are counted', () => {
  const text = render({ 'family:r2e-gym:resolved': 3, 'family:r2e-gym:failed': 1, 'family:moon:scored': 2 });
  const series = 'swefarm_family_rollouts_total{kind="training",family=';
  expect(text).toContain(`${series}"r2e-gym",end="resolved"} 3\n`);
  expect(text).toContain(`${series}"r2e-gym",end="unresolved"} 0\n`);
  expect(text).toContain(`${series}"multi-swe",end="scored"} 0\n`);
  expect(text).toContain(`${series}"moon",end="scored"} 2\n`);
});

test('each policy version of the window has its series', () => {
  const versions = new Map([['training', new Map([['v7', { 'outcome:judged': 4, resolved: 3 }]])]]);
  const text = renderFamilies(versionFamilies(versions));
  expect(text).toContain('swefarm_version_rollouts_total{kind="training",version="v7",outcome="judged"} 4\n');
  expect(text).toContain('swefarm_version_rollouts_total{kind="training",version="v7",outcome="failed"} 0\n');
  expect(text).toContain('swefarm_version_resolved_total{kind="training",version="v7"} 3\n');
});
