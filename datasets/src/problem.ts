/** Combines the problems of rows into one error. Each problem names position, field, expected value and remedy. */
import { UsageError } from '@swefarm/shared';
import { describeProblem, type RowProblem } from './fields/problem.ts';

export { describeValue, type RowProblem } from './fields/problem.ts';

/** A row of the file, or the problem that prevents reading it. */
export type RawRow =
  | {
      where: string;
      value: Record<string, unknown>;
      /** Line of a JSONL file, trimmed; absent for other formats. */
      text?: string;
    }
  | { where: string; problem: RowProblem };

/** Well-formed rows that cannot be graded, by reason, with the first problem of each. */
export type UngradableRows = Map<string, { count: number; first: RowProblem }>;

const SHOWN = 20;

/** Returns one error for all problems of a file. The message contains the first 20 problems. */
export function datasetError(path: string, problems: readonly RowProblem[]): UsageError {
  return new UsageError(describeProblems(path, problems, 'nothing was submitted'), { code: 'dataset_rows' });
}

/** Returns one error for all rows that cannot be graded, with a count and an example for each reason. */
export function ungradableError(path: string, rows: UngradableRows, all: number): UsageError {
  const total = [...rows.values()].reduce((sum, { count }) => sum + count, 0);
  const reasons = [...rows].map(
    ([reason, { count, first }]) => `  ${count}: ${reason} (${describeProblem(first)})`,
  );
  return new UsageError(
    [
      `${path}: ${total} of ${all} rows cannot be graded, nothing was submitted; --skip-ungradable leaves them out`,
      ...reasons,
    ].join('\n'),
    { code: 'dataset_rows' },
  );
}

/** Lists the problems of a file, one per line: the first 20, then the number of further problems. */
export function describeProblems(path: string, problems: readonly RowProblem[], effect: string): string {
  const lines = problems.slice(0, SHOWN).map(describeProblem);
  const more = problems.length - lines.length;
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
  const tail = more > 0 ? [`  … and ${more} more`] : [];
  return [`${path}: ${count}, ${effect}`, ...lines.map((line) => `  ${line}`), ...tail].join('\n');
}
