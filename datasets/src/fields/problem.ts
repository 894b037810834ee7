/** Describes a problem of one field of a row. */

export type RowProblem = {
  /** Position in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  /** Name of the column; null if the row as a whole is unreadable. */
  field: string | null;
  expected: string;
  found: string;
  remedy: string;
  /** Why a well-formed row cannot be graded. All rows with the same cause have the same text. */
  ungradable?: string;
};

export function describeProblem(problem: RowProblem): string {
  const field = problem.field === null ? '' : ` ${problem.field}:`;
  return `${problem.where}:${field} expected ${problem.expected}, found ${problem.found}; ${problem.remedy}`;
}

/** Returns a short description of a value, for messages with "found …". */
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
