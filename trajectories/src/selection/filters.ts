/** Filters the output lines of an export. Dropped lines are counted by the reason of the rule that dropped them. */
import { successOf } from '@swefarm/shared';
import { type Split, splitOf } from '../formats/verl/rows.ts';
import type { OutputLine } from '../output/line.ts';

export type ExportFilters = {
  onlyResolved?: boolean | undefined;
  minReward?: number | undefined;
  /** Whether to export only verdicts whose trust level is `clean`. */
  trustClean?: boolean | undefined;
  /** Whether to include rollouts that failed because of infrastructure. */
  withFailed?: boolean | undefined;
  tags?: readonly string[] | undefined;
  runs?: readonly string[] | undefined;
  instances?: ReadonlySet<string> | undefined;
  /** One side of the train/val split. The split is by instance, so all rollouts of an instance are on one side. */
  split?: { side: Split; valShare: number } | undefined;
  exitStatuses?: readonly string[] | undefined;
  maxTurns?: number | undefined;
};

type Rule = { reason: string; drops(line: OutputLine): boolean };

export function rulesOf(filters: ExportFilters): Rule[] {
  const rules: (Rule | false)[] = [
    filters.runs !== undefined && {
      reason: 'of another run',
      drops: without(filters.runs, (line) => line.run_id),
    },
    filters.tags !== undefined && {
      reason: 'of another tag',
      drops: without(filters.tags, (line) => line.tag ?? ''),
    },
    filters.instances !== undefined && {
      reason: 'of another instance',
      drops: ({ instance_id }) => !filters.instances?.has(instance_id),
    },
    filters.split !== undefined && {
      reason: 'of the other split',
      drops: ({ instance_id }) => splitOf(instance_id, filters.split?.valShare ?? 0) !== filters.split?.side,
    },
    { reason: 'cancelled', drops: ({ outcome }) => outcome === 'cancelled' },
    filters.withFailed !== true && {
      reason: 'failed by infrastructure',
      drops: ({ outcome }) => outcome === 'failed',
    },
    filters.onlyResolved === true && { reason: 'not resolved', drops: ({ resolved }) => resolved !== true },
    filters.onlyResolved === true && {
      reason: 'resolved without a reward',
      drops: (line) => successOf(line) !== true,
    },
    filters.minReward !== undefined && {
      reason: `without a reward of at least ${filters.minReward}`,
      drops: ({ reward }) => reward === null || reward < (filters.minReward ?? 0),
    },
    filters.trustClean === true && { reason: 'trust not clean', drops: (line) => trustOf(line) !== 'clean' },
    filters.exitStatuses !== undefined && {
      reason: 'of another exit status',
      drops: without(filters.exitStatuses, (line) => line.exit_status ?? 'none'),
    },
    filters.maxTurns !== undefined && {
      reason: `over ${filters.maxTurns} turns`,
      drops: ({ turns }) => turns > (filters.maxTurns ?? 0),
    },
  ];
  return rules.filter((rule) => rule !== false);
}

const without =
  (wanted: readonly string[], of: (line: OutputLine) => string) =>
  (line: OutputLine): boolean =>
    !wanted.includes(of(line));

const trustOf = ({ report, facts }: OutputLine): string | null => report?.trust.level ?? facts?.trust ?? null;
