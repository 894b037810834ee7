/** Builds the tables of reports, which are the same on a terminal, in Markdown and on a page. */
import type { Spread } from '@swefarm/datasets';
import { renderTable } from '../output/table.ts';
import type { Interval, ScalingAtK } from '../scaling/statistics.ts';
import type { Analysis, Costs, Cut } from './analysis.ts';

export type Table = { title: string; columns: string[]; rows: string[][] };

/** Renders a table with its title for a terminal. */
export function renderFigures({ title, columns, rows }: Table): string {
  const aligned = columns.map((name, at) => ({ name, align: at === 0 ? 'left' : 'right' }) as const);
  return `${title}\n${renderTable(aligned, rows)}`;
}

export const percent = (share: number | null): string =>
  share === null ? '–' : `${(100 * share).toFixed(1)} %`;
export const decimal = (value: number | null, digits: number): string =>
  value === null ? '–' : value.toFixed(digits);

/** Renders a value and its 95 % interval, for example `45.0 % (40.1–50.2)`. */
export const withInterval = (of: Interval | null): string =>
  of === null ? '–' : `${percent(of.value)} (${(100 * of.low).toFixed(1)}–${(100 * of.high).toFixed(1)})`;

export const scalingTable = (scaling: readonly ScalingAtK[]): Table => ({
  title: 'The best of k, with 95 % intervals over instances',
  columns: ['k', 'instances', 'pass@k', 'best@k', 'gap to the oracle', 'left out: no score'],
  rows: scaling.map(({ k, instances, pass, best, gap, unscored }) => [
    ...[String(k), String(instances), withInterval(pass), withInterval(best), withInterval(gap)],
    best === null ? '–' : String(unscored),
  ]),
});

type CutColumn = [name: string, cell: (cut: Cut) => string, isShown?: boolean];

export function cutTables({
  families,
  repositories,
  difficulty,
  sets,
  parts,
  components,
  agents,
}: Analysis): Table[] {
  const all = Object.values(repositories);
  const anyUnrewarded = all.some(({ resolved, resolved_officially: officially }) => resolved !== officially);
  const anyBest = all.some(({ largest }) => largest?.best);
  const candidates: CutColumn[] = [
    ['instances', ({ instances }) => String(instances)],
    ['resolved', ({ resolved }) => String(resolved)],
    ['resolved officially', (cut) => String(cut.resolved_officially), anyUnrewarded],
    ['judged', ({ judged, total }) => `${judged}/${total}`],
    ['scored only', ({ scored }) => String(scored), all.some(({ scored }) => scored > 0)],
    ['accuracy', ({ accuracy }) => percent(accuracy)],
    ['reward', (cut) => decimal(cut.mean_reward, 3)],
    ['k', ({ largest }) => String(largest?.k ?? '–')],
    ['pass@k', ({ largest }) => withInterval(largest?.pass ?? null)],
    ['best@k', ({ largest }) => withInterval(largest?.best ?? null), anyBest],
    ['gap to the oracle', ({ largest }) => withInterval(largest?.gap ?? null), anyBest],
    ['turns', (cut) => decimal(cut.mean_turns, 1)],
  ];
  const columns = candidates.filter(([, , isShown]) => isShown !== false);
  const table = (title: string, name: string, cuts: Record<string, Cut>): Table => ({
    title,
    columns: [name, ...columns.map(([column]) => column)],
    rows: Object.entries(cuts).map(([label, cut]) => [label, ...columns.map(([, cell]) => cell(cut))]),
  });
  return [
    ...(Object.keys(families).length === 0 ? [] : [table('By family', 'family', families)]),
    table('By repository', 'repository', repositories),
    table('By difficulty: how often an instance is resolved here', 'resolved', difficulty),
    ...(Object.keys(sets).length === 0 ? [] : [table('By set', 'set', sets)]),
    ...numbersTable('Parts of rewards', 'part', parts),
    ...numbersTable('Components of rewards', 'component', components),
    ...(Object.keys(agents).length === 0 ? [] : [agentTable(agents)]),
  ];
}

const agentTable = (agents: Analysis['agents']): Table => ({
  title: 'Agents that came as programs',
  columns: [
    ...['agent', 'rollouts', 'resolved', 'lines', 'turns', 'masked turns', 'requests'],
    ...['rendered whole', 'repeated', 'repaired', 'refused'],
  ],
  rows: Object.entries(agents).map(([name, { total, resolved, recorded }]) => [
    ...[name, String(total), String(resolved)],
    ...Object.values(recorded).map(String),
  ]),
});

function numbersTable(title: string, what: string, numbers: Analysis['components']): Table[] {
  const rows = Object.entries(numbers).flatMap(([family, own]) =>
    Object.entries(own).map(([name, { rollouts, mean, spread }]) => [
      ...[family, name, String(rollouts)],
      ...[mean, spread.least, spread.median, spread.most].map((value) => decimal(value, 3)),
    ]),
  );
  const columns = ['family', what, 'rollouts', 'mean', 'least', 'median', 'most'];
  return rows.length === 0 ? [] : [{ title, columns, rows }];
}

export const costTable = ({ total, rollouts, per_rollout, per_success }: Costs): Table => ({
  title: 'Cost in US dollars',
  columns: ['total', 'rollouts with a cost', 'per rollout', 'per success'],
  rows: [[decimal(total, 2), String(rollouts), decimal(per_rollout, 4), decimal(per_success, 4)]],
});

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
