import type { GroupSummary, Summary } from '@swefarm/trajectories';
import { type Column, GAP, middle, renderTable, safeFirstLine, withVerdict } from '@swefarm/trajectories';

/** Maximum number of groups in the table. Of more groups, only groups with a failure or a resolved rollout are shown. */
const MOST_GROUPS = 40;
const NUMBERS = ['resolved', 'reward', 'turns', 'seconds'] as const;

/** Renders a table of at most `width` characters (at least 60), with the causes of failures below the table. */
export function renderSummary(summary: Summary, width: number): string {
  const { groups, all } = summary;
  const notable = groups.filter(({ failed, resolved }) => failed > 0 || resolved > 0);
  const shown = groups.length > MOST_GROUPS ? notable.slice(0, MOST_GROUPS) : groups;
  const hidden = groups.length - shown.length;
  const numbers = NUMBERS.map((name) => name.length + GAP + 1);
  const rest = Math.max(60, Math.min(width, 140)) - numbers.reduce((sum, one) => sum + one, 0);
  const longest = Math.max(...shown.map((group) => group.instance_id.length), 8) + GAP;
  const rows = [...shown.map((group) => cells(group, group.instance_id)), cells(all, 'all')];
  const ends = Math.max(...rows.map((row) => row.at(-1)?.length ?? 0)) + GAP;
  const idWidth = Math.min(longest, Math.max(Math.floor(rest * 0.55), rest - ends));
  const columns: Column[] = [
    { name: 'instance', width: idWidth },
    ...NUMBERS.map((name, at) => ({ name, width: numbers[at] ?? 0, align: 'right' as const })),
    { name: 'ended', width: rest - idWidth },
  ];
  const body = shown.map((group) => cells(group, middle(group.instance_id, idWidth - GAP)));
  if (groups.length !== 1) body.push(cells(all, hidden > 0 ? `all (${hidden} more)` : 'all'));
  return [renderTable(columns, body), ...causes(summary)].join('\n');
}

function cells(group: GroupSummary, name: string): string[] {
  const ends = [
    ...sorted(group.exit_statuses).map(([end, times]) => `${end === 'none' ? 'done' : end}×${times}`),
    ...(group.failed > 0 ? [`failed×${group.failed}`] : []),
    ...(group.cancelled > 0 ? [`cancelled×${group.cancelled}`] : []),
  ];
  return [
    name,
    `${group.resolved}/${withVerdict(group)}`,
    group.reward_mean === null ? '–' : group.reward_mean.toFixed(2),
    group.turns_mean === null ? '–' : group.turns_mean.toFixed(1),
    group.seconds_mean === null ? '–' : group.seconds_mean.toFixed(1),
    ends.join(', ') || 'no result',
  ];
}

/** Counts failures by stage and class, each with an example message. */
function causes({ all, examples }: Summary): string[] {
  return sorted(all.failures).map(
    ([cause, times]) => `failed×${times} ${cause}: ${safeFirstLine(examples[cause] ?? '')}`,
  );
}

const sorted = (counts: Record<string, number>): [string, number][] =>
  Object.entries(counts).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
