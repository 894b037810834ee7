/** Renders a profile as text: one number per line, then the causes of rollouts that were not judged. */
import type { Profile } from '../output/profile.ts';
import { renderTable } from '../output/table.ts';
import { decimal, percent } from './figures.ts';

export type ProfileReport = Profile & {
  /** Expected number of rollouts of the runs; null when unknown. */
  expected: number | null;
};

/** Renders the report. `ks` lists the values of k whose pass@k is shown. */
export function renderReport(report: ProfileReport, ks: readonly number[]): string {
  const open = report.expected === null ? 0 : Math.max(0, report.expected - report.total);
  const { groups, pass_at_1_avg_of_k: average } = report;
  const numbers: [string, string][] = [
    [
      'rollouts',
      `${report.total}${report.expected === null ? '' : ` of ${report.expected}`}${open > 0 ? `, ${open} open` : ''}`,
    ],
    ['judged', String(report.judged)],
    ['resolved', String(report.resolved)],
    ['resolved officially', String(report.resolved_officially)],
    ...(report.scored > 0 ? [['scored only', String(report.scored)] as [string, string]] : []),
    ['accuracy', percent(report.accuracy)],
    ['mean reward', decimal(report.mean_reward, 3)],
    ...ks.map((k): [string, string] => [`pass@${k}`, percent(report.pass_at[String(k)] ?? null)]),
    [`pass@1[avg-of-${average?.k ?? 'k'}]`, percent(average?.value ?? null)],
    ['patch applied', percent(report.patch_applied_rate)],
    ['evaluation errors', percent(report.evaluation_error_rate)],
    ['mean turns', turns(report)],
    ['groups', `${groups.complete} of ${groups.total} complete (${groups.size} judged each)`],
  ];
  const causes = [
    ...Object.entries(report.failures).map(([cause, times]) => ['failed', cause, String(times)]),
    ...Object.entries(report.cancelled).map(([cause, times]) => ['cancelled', cause, String(times)]),
  ];
  const all = renderTable([{ name: 'all' }, { name: '' }], numbers);
  if (causes.length === 0) return all;
  const columns = [{ name: 'not judged' }, { name: 'cause' }, { name: 'times', align: 'right' as const }];
  return `${all}\n\n${renderTable(columns, causes)}`;
}

function turns({ mean_turns: judged, mean_turns_cancelled: cancelled }: ProfileReport): string {
  const shown = decimal(judged, 1);
  return cancelled === null ? shown : `${shown} judged, ${decimal(cancelled, 1)} cancelled`;
}
