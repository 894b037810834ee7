/** Reads the fields of one row and collects their problems. */

import { isImageName, isImagePath } from './image.ts';
import { describeValue, type RowProblem } from './problem.ts';

export type Row = Record<string, unknown>;

/** Columns that name an image, the first that is filled in wins. */
export const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;

export class FieldReader {
  readonly problems: RowProblem[] = [];
  readonly row: Row;
  readonly #where: string;

  constructor(where: string, row: Row) {
    this.#where = where;
    this.row = row;
  }

  complain(field: string | null, expected: string, value: unknown, remedy: string): void {
    this.problems.push({ where: this.#where, field, expected, found: describeValue(value), remedy });
  }

  /** The row is well formed, and cannot be graded. `reason` is the same for all such rows, which are counted by it. */
  refuse(reason: string, field: string, expected: string, value: unknown, remedy: string): void {
    this.complain(field, expected, value, remedy);
    const last = this.problems.at(-1);
    if (last) last.ungradable = reason;
  }

  complainedOf(...fields: string[]): boolean {
    return this.problems.some((problem) => problem.field !== null && fields.includes(problem.field));
  }

  /** A column that must hold text. */
  text(name: string, remedy: string): string {
    const value = this.row[name];
    if (typeof value === 'string' && value !== '') return value;
    this.complain(name, 'a string', value, remedy);
    return '';
  }

  /** A column that may be absent or null, unless `remedy` is given. */
  optionalText(name: string, remedy?: string): string | null {
    const value = this.row[name] ?? null;
    if (typeof value === 'string') return value;
    if (value !== null) this.complain(name, 'a string', value, 'write the column as text');
    else if (remedy !== undefined) this.complain(name, 'a string', undefined, remedy);
    return null;
  }

  /** The column instance_id. */
  id(): string {
    const id = this.text('instance_id', 'give every row the id of its instance');
    if (id !== '' && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id)) {
      this.complain('instance_id', 'letters, digits, ".", "_" and "-"', id, 'rename the instance');
    }
    return id;
  }

  /** Test ids, as a list or as the text of one, in JSON or as Python writes it. */
  tests(name: string): string[] {
    const value = this.row[name];
    if (isTextList(value)) return value;
    const parsed = typeof value === 'string' ? parseList(value) : null;
    if (parsed) return parsed;
    const expected = 'a list of test ids, or the JSON text of one';
    this.complain(name, expected, value, 'export the column as a list of strings');
    return [];
  }

  /** Shell commands: one text or a list of them; none when the column is absent. */
  commands(name: string, value: unknown = this.row[name]): string[] {
    if (value === undefined || value === null || value === '') return [];
    if (typeof value === 'string') return [value];
    if (isTextList(value)) return value;
    this.complain(name, 'a string or a list of strings', value, 'write the command as text');
    return [];
  }

  /** An object, or the JSON text of one; empty, with a problem, when the column holds anything else. */
  object(name: string, remedy: string): Row {
    const found = asObject(this.row[name]);
    if (found) return found;
    this.complain(name, 'an object, or the JSON text of one', this.row[name], remedy);
    return {};
  }

  /** The first image column that is filled in. */
  image(columns: readonly string[] = IMAGE_COLUMNS): string | null {
    for (const name of columns) {
      const value = this.row[name] ?? '';
      if (value === '') continue;
      if (typeof value === 'string' && (isImageName(value) || isImagePath(value))) return value;
      this.complain(name, 'the name of a container image', value, 'write it as registry/name:tag');
      return null;
    }
    return null;
  }
}

export const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** A value that is an object or the JSON text of one; null for all else. */
export function asObject(value: unknown): Row | null {
  const given = typeof value === 'string' ? parseJson(value) : value;
  return given !== null && typeof given === 'object' && !Array.isArray(given) ? (given as Row) : null;
}

function parseList(text: string): string[] | null {
  const value = parseJson(text);
  return isTextList(value) ? value : null;
}

/** Undefined when the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
