/** What a run came to, counted from its output lines alone, so that a resumed run and a whole one say the same. */

import { type Column, GAP, renderTable } from '../view/table.ts';
import { terminalSafe } from '../view/terminalsafe.ts';
import type { LineSummary } from './line.ts';
import { countNames, mean, meansOf, ratio, tally } from './tally.ts';

export type GroupSummary = {
  instance_id: string;
  rollouts: number;
  judged: number;
  failed: number;
  cancelled: number;
  resolved: number;
  /** Mean over rollouts that carry a reward; null when none does. */
  reward_mean: number | null;
  /** Mean over judged rollouts; null when there is none. */
  turns_mean: number | null;
  /** Mean over cancelled rollouts of what they had taken by then; null when there is none. */
  cancelled_turns_mean: number | null;
  exit_statuses: Record<string, number>;
  /** `stage/class` → how often. */
  failures: Record<string, number>;
  /** Mean seconds from claim to result, over rollouts that have one. */
  seconds_mean: number | null;
};

export type Summary = {
  /** One per instance, in the order given. */
  groups: GroupSummary[];
  all: GroupSummary;
  /** The message of one failure per `stage/class`. */
  examples: Record<string, string>;
};

/** Counts lines by instance; instances without a line count too. */
export function summarise(instanceIds: Iterable<string>, lines: Iterable<LineSummary>): Summary {
  const byGroup = new Map<string, LineSummary[]>(Array.from(instanceIds, (id) => [id, []]));
  const every: LineSummary[] = [];
  const examples: Record<string, string> = {};
  for (const line of lines) {
    const group = byGroup.get(line.instance_id);
    if (group) group.push(line);
    else byGroup.set(line.instance_id, [line]);
    every.push(line);
    if (line.failure)
      examples[causeOf(line.failure)] ??= terminalSafe(line.failure.message.split('\n')[0] ?? '').slice(
        0,
        240,
      );
  }
  return {
    groups: Array.from(byGroup, ([id, group]) => summariseGroup(id, group)),
    all: summariseGroup('all', every),
    examples,
  };
}

const causeOf = (failure: NonNullable<LineSummary['failure']>): string => `${failure.stage}/${failure.class}`;

function summariseGroup(instanceId: string, lines: readonly LineSummary[]): GroupSummary {
  const judged = lines.filter((line) => line.outcome === 'judged');
  const sums = tally(lines);
  const { reward_mean, turns_mean } = meansOf(sums);
  return {
    instance_id: instanceId,
    rollouts: sums.total,
    judged: sums.judged,
    failed: sums.failed,
    cancelled: sums.cancelled,
    resolved: sums.resolved,
    reward_mean,
    turns_mean,
    cancelled_turns_mean: ratio(sums.cancelled_turns_sum, sums.cancelled),
    exit_statuses: countNames(judged.map((line) => line.exit_status ?? 'none')),
    failures: countNames(lines.flatMap((line) => (line.failure ? [causeOf(line.failure)] : []))),
    seconds_mean: mean(lines.map((line) => line.seconds.total)),
  };
}

/** Groups shown one by one; a run of thousands of instances is not read as a table. */
const MOST_GROUPS = 40;
const NUMBERS = ['resolved', 'reward', 'turns', 'seconds'] as const;

/** A table for people, at most `width` columns wide (60 at least), and the causes of failures below it. */
export function renderSummary(summary: Summary, width: number): string {
  const { groups, all } = summary;
  const shown = groups.length > MOST_GROUPS ? groups.filter(isTelling).slice(0, MOST_GROUPS) : groups;
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

const isTelling = (group: GroupSummary): boolean => group.failed > 0 || group.resolved > 0;

function cells(group: GroupSummary, name: string): string[] {
  const ends = [
    ...sorted(group.exit_statuses).map(([end, times]) => `${end === 'none' ? 'done' : end}×${times}`),
    ...(group.failed > 0 ? [`failed×${group.failed}`] : []),
    ...(group.cancelled > 0 ? [`cancelled×${group.cancelled}`] : []),
  ];
  return [
    name,
    `${group.resolved}/${group.judged}`,
    group.reward_mean === null ? '–' : group.reward_mean.toFixed(2),
    group.turns_mean === null ? '–' : group.turns_mean.toFixed(1),
    group.seconds_mean === null ? '–' : group.seconds_mean.toFixed(1),
    ends.join(', ') || 'no result',
  ];
}

/** Failures by stage and class, each with the words of one of them. */
function causes({ all, examples }: Summary): string[] {
  return sorted(all.failures).map(([cause, times]) => `failed×${times} ${cause}: ${examples[cause] ?? ''}`);
}

/** Most frequent first. */
const sorted = (counts: Record<string, number>): [string, number][] =>
  Object.entries(counts).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));

/** Instance ids differ at their ends, so the middle goes. */
export function middle(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
