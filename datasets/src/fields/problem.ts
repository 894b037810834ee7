/** A problem of one field of a row, and the words for any value that is found there. */

export type RowProblem = {
  /** Where in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  /** Column, or null when the row as a whole is unreadable. */
  field: string | null;
  expected: string;
  found: string;
  remedy: string;
  /** Set when the row is well formed and cannot be graded: why, in the same words for all such rows. */
  ungradable?: string;
};

/** One line about a problem. */
export function describeProblem(problem: RowProblem): string {
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
