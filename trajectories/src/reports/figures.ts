/** Figures of reports as text: the same words on a terminal, in Markdown and on a page. */
import type { Spread } from '@swefarm/datasets';
import type { Interval, ScalingAtK } from '../scaling/statistics.ts';
import type { Analysis, Costs, Cut } from './analysis.ts';

export type Table = { title: string; columns: string[]; rows: string[][] };

export const percent = (share: number | null): string =>
  share === null ? '–' : `${(100 * share).toFixed(1)} %`;
export const decimal = (value: number | null, digits: number): string =>
  value === null ? '–' : value.toFixed(digits);

/** `45.0 % (40.1–50.2)`: the value and its 95 % interval. */
export const withInterval = (of: Interval | null): string =>
  of === null ? '–' : `${percent(of.value)} (${(100 * of.low).toFixed(1)}–${(100 * of.high).toFixed(1)})`;

export function scalingTable(scaling: readonly ScalingAtK[]): Table {
  return {
    title: 'The best of k, with 95 % intervals over instances',
    columns: ['k', 'instances', 'pass@k', 'best@k', 'gap to the oracle', 'left out: no score'],
    rows: scaling.map(({ k, instances, pass, best, gap, unscored }) => [
      ...[String(k), String(instances), withInterval(pass), withInterval(best), withInterval(gap)],
      best === null ? '–' : String(unscored),
    ]),
  };
}

export function cutTables({ families, repositories, difficulty, sets, components }: Analysis): Table[] {
  const anyScored = Object.values(repositories).some(({ scored }) => scored > 0);
  const anyUnrewarded = Object.values(repositories).some(
    ({ resolved, resolved_officially }) => resolved !== resolved_officially,
  );
  const anyBest = Object.values(repositories).some(({ largest }) => largest?.best);
  const table = (title: string, name: string, cuts: Record<string, Cut>): Table => {
    return {
      title,
      columns: [
        name,
        'instances',
        'resolved',
        ...(anyUnrewarded ? ['resolved officially'] : []),
        'judged',
        ...(anyScored ? ['scored only'] : []),
        'accuracy',
        'reward',
        'k',
        'pass@k',
        ...(anyBest ? ['best@k', 'gap to the oracle'] : []),
        'turns',
      ],
      rows: Object.entries(cuts).map(([label, cut]) => [
        ...[
          label,
          String(cut.instances),
          String(cut.resolved),
          ...(anyUnrewarded ? [String(cut.resolved_officially)] : []),
          `${cut.judged}/${cut.total}`,
          ...(anyScored ? [String(cut.scored)] : []),
          percent(cut.accuracy),
          decimal(cut.mean_reward, 3),
          String(cut.largest?.k ?? '–'),
        ],
        ...[
          withInterval(cut.largest?.pass ?? null),
          ...(anyBest
            ? [withInterval(cut.largest?.best ?? null), withInterval(cut.largest?.gap ?? null)]
            : []),
          decimal(cut.mean_turns, 1),
        ],
      ]),
    };
  };
  return [
    ...(Object.keys(families).length === 0 ? [] : [table('By family', 'family', families)]),
    table('By repository', 'repository', repositories),
    table('By difficulty: how often an instance is resolved here', 'resolved', difficulty),
    ...(Object.keys(sets).length === 0 ? [] : [table('By set', 'set', sets)]),
    ...(Object.keys(components).length === 0 ? [] : [componentTable(components)]),
  ];
}

const componentTable = (components: Analysis['components']): Table => ({
  title: 'Parts of rewards',
  columns: ['family', 'part', 'rollouts', 'mean', 'least', 'median', 'most'],
  rows: Object.entries(components).flatMap(([family, own]) =>
    Object.entries(own).map(([name, { rollouts, mean, spread }]) => [
      ...[family, name, String(rollouts)],
      ...[mean, spread.least, spread.median, spread.most].map((value) => decimal(value, 3)),
    ]),
  ),
});

export const costTable = ({ total, rollouts, per_rollout, per_success }: Costs): Table => ({
  title: 'Cost in US dollars',
  columns: ['total', 'rollouts with a cost', 'per rollout', 'per success'],
  rows: [[decimal(total, 2), String(rollouts), decimal(per_rollout, 4), decimal(per_success, 4)]],
});

/** How the judged rollouts, and the rollouts with a cost, are spread. */
export function distributionTables({ distributions }: Analysis): Table[] {
  const { exit_statuses, spreads } = distributions;
  const judged = Object.values(exit_statuses).reduce((sum, times) => sum + times, 0);
  const row = (name: string, of: Spread, digits: number): string[][] =>
    of === null
      ? []
      : [[name, ...[of.least, of.q1, of.median, of.q3, of.most].map((value) => decimal(value, digits))]];
  const rows = [
    ...row('turns of judged rollouts', spreads.turns, 0),
    ...row('tokens of judged rollouts', spreads.tokens, 0),
    ...row('cost in US dollars', spreads.cost, 4),
  ];
  const columns = ['of rollouts', 'least', '25 % below', 'median', '75 % below', 'most'];
  return [
    ...(rows.length === 0 ? [] : [{ title: 'Distributions', columns, rows }]),
    {
      title: 'Why agents stopped',
      columns: ['exit status', 'judged rollouts', 'share'],
      rows: Object.entries(exit_statuses).map(([status, times]) => [
        ...[status, String(times), percent(times / judged)],
      ]),
    },
  ];
}
