/** A problem of one field of a row, and the description of a value for its message. */

export type RowProblem = {
  /** Where in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  /** Column; null if the row as a whole is unreadable. */
  field: string | null;
  expected: string;
  found: string;
  remedy: string;
  /** Why a well-formed row cannot be graded; equal for all rows with that reason. */
  ungradable?: string;
};

export function describeProblem(problem: RowProblem): string {
  const field = problem.field === null ? '' : ` ${problem.field}:`;
  return `${problem.where}:${field} expected ${problem.expected}, found ${problem.found}; ${problem.remedy}`;
}

/** A short, printable description of a value, for "found …". */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) {
    const odd = value.find((item) => typeof item !== 'string');
    return value.length === 0
      ? 'an empty list'
      : odd === undefined
        ? 'a list of strings'
        : `a list that contains ${describeValue(odd)}`;
  }
  if (value instanceof Date) return 'a timestamp';
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return `the ${typeof value} ${String(value)}`;
  if (value === '') return 'an empty string';
  return `the text ${JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value)}`;
}
