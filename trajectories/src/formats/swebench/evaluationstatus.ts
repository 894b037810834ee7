/** Derives the status of each prediction: its verdict, or why it has no verdict. */
import type { Report, Result } from '@swefarm/shared';

export type EvaluationStatus = string;

/** Meanings of statuses, in the order of the printed table. Other statuses follow: `STAGE/CLASS` of a failure, or an outcome. */
export const STATUS_MEANINGS: Readonly<Record<string, string>> = {
  resolved: 'every named test passes',
  unresolved: 'the tests ran, not all that must pass do',
  scored: 'the dataset gives a number and no verdict',
  empty_patch: 'empty or null patch: never run',
  patch_not_applied: 'the patch does not apply',
  patch_too_large: 'the patch is over 10 MB',
  tests_timed_out: 'the tests ran into the time limit, also alone on the node',
  tests_cannot_start: 'no test outcome in the log could be parsed',
  killed_by_own_limit:
    'the container was killed by its own memory or process limit, filled the disk, or was broken by what ran in it',
  log_unreadable: 'the harness itself breaks on this log',
  image_unavailable: 'the image is unavailable',
  node_out_of_disk: 'the node ran out of disk',
  node_out_of_memory: 'the node ran out of memory',
  engine_gone: 'the container engine does not answer',
  container_lost: 'the container or its output vanished',
  earlier: 'a report.json was there: not run again',
};

const BY_CLASS: Readonly<Record<string, EvaluationStatus>> = {
  image_not_found: 'image_unavailable',
  image_pull: 'image_unavailable',
  node_disk: 'node_out_of_disk',
  node_memory: 'node_out_of_memory',
  engine_unreachable: 'engine_gone',
  evaluation_lost: 'container_lost',
  sandbox_lost: 'container_lost',
};

/** Returns the status of a result, from the report if possible: the reward table's failure has less detail than the report. */
export function evaluationStatusOf(
  result: Pick<Result, 'outcome' | 'failure'>,
  report: Pick<Report, 'patch_state' | 'evaluation' | 'resolved' | 'score' | 'unreadable'> | null,
): EvaluationStatus {
  if (report) {
    if (report.patch_state === 'not_applied') return 'patch_not_applied';
    if (report.patch_state === 'too_large') return 'patch_too_large';
    if (report.evaluation === 'timed_out') return 'tests_timed_out';
    if (report.evaluation === 'sandbox_killed') return 'killed_by_own_limit';
    if (report.unreadable === 'raises') return 'log_unreadable';
    if (report.evaluation === 'tests_cannot_start') return 'tests_cannot_start';
    if (report.evaluation === 'completed') {
      if (report.resolved === null && typeof report.score === 'number') return 'scored';
      return report.resolved ? 'resolved' : 'unresolved';
    }
  }
  if (result.failure)
    return BY_CLASS[result.failure.class] ?? `${result.failure.stage}/${result.failure.class}`;
  return result.outcome;
}

/** Counts statuses in the order of STATUS_MEANINGS; other statuses come last. */
export function countStatuses(ends: Iterable<EvaluationStatus>): [EvaluationStatus, number][] {
  const counts = new Map<EvaluationStatus, number>();
  for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1);
  const order = Object.keys(STATUS_MEANINGS);
  const rank = (end: EvaluationStatus): number =>
    (order.indexOf(end) + order.length + 1) % (order.length + 1);
  return [...counts].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
