/** Filters the output lines of an export. */
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

/** Returns why the filters drop a line, as a reason by which dropped lines are counted; null if they do not. */
export function dropReason(line: OutputLine, filters: ExportFilters): string | null {
  const { outcome, resolved, reward, report, facts } = line;
  const { runs, tags, instances, split, onlyResolved, minReward, exitStatuses, maxTurns } = filters;
  if (runs && !runs.includes(line.run_id)) return 'of another run';
  if (tags && !tags.includes(line.tag ?? '')) return 'of another tag';
  if (instances && !instances.has(line.instance_id)) return 'of another instance';
  if (split && splitOf(line.instance_id, split.valShare) !== split.side) return 'of the other split';
  if (outcome === 'cancelled') return 'cancelled';
  if (outcome === 'failed' && !filters.withFailed) return 'failed by infrastructure';
  if (onlyResolved && resolved !== true) return 'not resolved';
  if (onlyResolved && successOf(line) !== true) return 'resolved without a reward';
  if (minReward !== undefined && (reward === null || reward < minReward))
    return `without a reward of at least ${minReward}`;
  if (filters.trustClean && (report?.trust.level ?? facts?.trust) !== 'clean') return 'trust not clean';
  if (exitStatuses && !exitStatuses.includes(line.exit_status ?? 'none')) return 'of another exit status';
  return maxTurns !== undefined && line.turns > maxTurns ? `over ${maxTurns} turns` : null;
}
