/** Reads the fields of one row and collects their problems. */
import { tryParseJson } from '@swefarm/shared';
import { isImageName, isImagePath } from './image.ts';
import { describeValue, type RowProblem } from './problem.ts';

export type Row = Record<string, unknown>;

/** Columns that may name an image. The first filled column is used. */
export const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;

export class FieldReader {
  readonly problems: RowProblem[] = [];
  /** Messages for the caller about a usable row, such as unknown keys. */
  readonly warnings: string[] = [];
  readonly row: Row;
  readonly #where: string;

  constructor(where: string, row: Row) {
    this.#where = where;
    this.row = row;
  }

  complain(
    field: string,
    expected: string,
    value: unknown,
    remedy: string,
    more?: Pick<RowProblem, 'ungradable'>,
  ): void {
    this.problems.push({ where: this.#where, field, expected, found: describeValue(value), remedy, ...more });
  }

  warn(text: string): void {
    this.warnings.push(`${this.#where}: ${text}`);
  }

  /** Records that a well-formed row cannot be graded. Summaries count the refused rows by `reason`. */
  refuse(
    reason: string,
    field: string,
    expected: string,
    value: unknown,
    remedy = 'leave out the row',
  ): void {
    this.complain(field, expected, value, remedy, { ungradable: reason });
  }

  complainedOf(...fields: string[]): boolean {
    return this.problems.some((problem) => problem.field !== null && fields.includes(problem.field));
  }

  /** Returns the text of a column; '' and a recorded problem if the column is empty or no text. */
  text(name: string, remedy: string): string {
    const value = this.row[name];
    if (typeof value === 'string' && value !== '') return value;
    this.complain(name, 'a string', value, remedy);
    return '';
  }

  /** Returns the text of a column that may be absent or null. With a `remedy`, an absent column is a problem. */
  optionalText(name: string, remedy?: string): string | null {
    const value = this.row[name] ?? null;
    if (typeof value === 'string') return value;
    if (value !== null) this.complain(name, 'a string', value, 'write the column as text');
    else if (remedy !== undefined) this.complain(name, 'a string', undefined, remedy);
    return null;
  }

  /** Returns the texts of columns that may be absent; '' for an absent or null column. */
  texts<N extends string>(...names: N[]): Record<N, string> {
    const texts = names.map((name) => [name, this.optionalText(name) ?? '']);
    return Object.fromEntries(texts) as Record<N, string>;
  }

  repo(): string {
    return this.text('repo', 'add the column repo as owner/name');
  }

  id(): string {
    const id = this.text('instance_id', 'give every row the id of its instance');
    if (id !== '' && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id)) {
      this.complain('instance_id', 'letters, digits, ".", "_" and "-"', id, 'rename the instance');
    }
    return id;
  }

  /** Reads test ids from a list, or from the JSON text of a list. */
  tests(name: string): string[] {
    const value = this.row[name];
    if (isTextList(value)) return value;
    const parsed = typeof value === 'string' ? tryParseJson(value) : null;
    if (isTextList(parsed)) return parsed;
    const expected = 'a list of test ids, or the JSON text of one';
    this.complain(name, expected, value, 'export the column as a list of strings');
    return [];
  }

  /** Reads shell commands from a text or a list of texts. An absent column means no commands. */
  commands(name: string, value: unknown = this.row[name]): string[] {
    if (value === undefined || value === null || value === '') return [];
    if (typeof value === 'string') return [value];
    if (isTextList(value)) return value;
    this.complain(name, 'a string or a list of strings', value, 'write the command as text');
    return [];
  }

  /** Reads an object or the JSON text of an object. Any other value is a problem, and the result is an empty object. */
  object(name: string, remedy: string): Row {
    const found = asObject(this.row[name]);
    if (found) return found;
    this.complain(name, 'an object, or the JSON text of one', this.row[name], remedy);
    return {};
  }

  /** Returns the first filled image column; null if all are empty, or if the value is invalid (a recorded problem). */
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

export const isRow = (value: unknown): value is Row =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Returns the value, or its parsed JSON text, if the result is an object; null for any other value. */
export function asObject(value: unknown): Row | null {
  const given = typeof value === 'string' ? tryParseJson(value) : value;
  return isRow(given) ? given : null;
}

/** Replaces each value, also inside lists and objects, for which `replace` returns something other than undefined. */
export function mapLeaves(value: unknown, replace: (leaf: unknown) => unknown): unknown {
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  if (Array.isArray(value)) return value.map((item) => mapLeaves(item, replace));
  if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mapLeaves(inner, replace)]));
}
