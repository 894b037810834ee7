/** The row of the training dashboard that compares the policy's versions. */
import { OUTCOME_METRICS as O, WORKER_METRICS as W } from '@swefarm/shared';
import { promql, TRAINING_VARIABLES, WINDOW } from './promql.ts';
import type { DashboardSpec } from './spec.ts';

const { now, rate, share, without } = promql(TRAINING_VARIABLES);
/** The counters of a version end with it, so their present sums tell more than a rate. */
const judgedOf = now(O.versionRollouts, ['kind', 'version'], { outcome: 'judged' });

export const POLICY_VERSIONS: DashboardSpec['rows'][number] = {
  title: 'Policy versions',
  panels: [
    {
      key: 'versions-resolve-rate',
      title: 'Resolve rate by policy version',
      kind: 'timeseries',
      unit: 'percentunit',
      max: 1,
      queries: [
        {
          expr: share(
            now(O.versionResolved, ['kind', 'version']),
            without(judgedOf, now(O.versionScored, ['kind', 'version'])),
          ),
          legend: '{{kind}} {{version}}',
        },
      ],
      about: 'Over all rollouts of that version so far; the versions that committed last.',
      next: ['training/resolve-rate'],
    },
    {
      key: 'versions-rollouts',
      title: 'Rollouts by policy version',
      kind: 'timeseries',
      unit: 'ops',
      stacked: true,
      queries: [
        {
          expr: rate(O.versionRollouts, WINDOW, ['version'], { outcome: 'judged' }),
          legend: '{{version}}',
        },
      ],
      about: 'Judged rollouts a second by the weights that produced them: how stale the training data is.',
    },
    {
      key: 'versions-turns',
      title: 'Turns and reward by policy version',
      kind: 'timeseries',
      unit: 'short',
      queries: [
        {
          expr: share(now(O.versionTurns, ['kind', 'version']), judgedOf),
          legend: '{{kind}} {{version}} turns',
        },
        {
          expr: share(now(O.versionReward, ['kind', 'version']), judgedOf),
          legend: '{{kind}} {{version}} reward',
        },
      ],
      about: 'Means over all judged rollouts of that version so far.',
    },
    {
      key: 'turns-live',
      title: 'Turns a second, as they happen',
      kind: 'stat',
      unit: 'ops',
      queries: [{ expr: rate(W.turns, WINDOW), legend: 'turns' }],
      about: 'All workers, those of attempts that fail too.',
      next: ['nodes/active'],
    },
  ],
};
