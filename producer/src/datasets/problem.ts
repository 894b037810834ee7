/** Problems of rows, which are collected and reported together; each names place, field, expectation and remedy. */
import { UsageError } from '@swefarm/shared';

export type RowProblem = {
  /** Where in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  /** Column, or null when the row as a whole is unreadable. */
  field: string | null;
  expected: string;
  found: string;
  remedy: string;
};

/** A row of the file, or why it cannot be read. */
export type RawRow =
  | { where: string; value: Record<string, unknown> }
  | { where: string; problem: RowProblem };

const SHOWN = 20;

/** One error for all bad rows of a file, with the first 20 in full. */
export function datasetError(path: string, problems: readonly RowProblem[]): UsageError {
  return new UsageError(describeProblems(path, problems, 'nothing was submitted'), { code: 'dataset_rows' });
}

/** All bad rows of a file, one a line, the first 20 in full. */
export function describeProblems(path: string, problems: readonly RowProblem[], effect: string): string {
  const lines = problems.slice(0, SHOWN).map(describeProblem);
  const more = problems.length - lines.length;
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
  const tail = more > 0 ? [`  … and ${more} more`] : [];
  return [`${path}: ${count}, ${effect}`, ...lines.map((line) => `  ${line}`), ...tail].join('\n');
}

function describeProblem(problem: RowProblem): string {
  const field = problem.field === null ? '' : ` ${problem.field}:`;
  return `${problem.where}:${field} expected ${problem.expected}, found ${problem.found}; ${problem.remedy}`;
}

/** A short, printable description of any value, for "found …". */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) {
    const odd = value.find((item) => typeof item !== 'string');
    return value.length === 0
      ? 'an empty list'
      : odd === undefined
        ? 'a list of strings'
        : `a list holding ${describeValue(odd)}`;
  }
  if (value instanceof Date) return 'a timestamp';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return value === '' ? 'an empty string' : `the text ${excerpt(value)}`;
  return `the ${typeof value} ${String(value)}`;
}

function excerpt(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}…` : text;
  return JSON.stringify(short);
}
