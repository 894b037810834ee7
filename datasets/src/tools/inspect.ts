/** Summarises a dataset file in one pass: columns, families, repositories, tests, and rows that cannot be graded. */
import { IMAGE_COLUMNS } from '../fields/fields.ts';
import type { RowOptions } from '../row.ts';
import { type Spread, spreadOf } from '../spread.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';
import { idOf, repositoryOf } from './select.ts';
import { readRow } from './variables.ts';

export type ColumnFacts = {
  /** Number of rows in which the column is present and not null. */
  filled: number;
  /** Number of rows by JSON type: text, number, boolean, list, object. */
  types: Record<string, number>;
};

export type DatasetFacts = {
  path: string;
  form: VerbatimFile['form'];
  rows: number;
  /** Ids that more than one row has. */
  doubled: string[];
  columns: Record<string, ColumnFacts>;
  families: Record<string, number>;
  repositories: Record<string, number>;
  gradable: number;
  /** Number of rows for each reason, with an example. */
  ungradable: Record<string, { rows: number; example: string }>;
  /** Number of rows without gold patch, statement, FAIL_TO_PASS or image. An image that the family derives from the id counts. */
  without: { patch: number; problem_statement: number; FAIL_TO_PASS: number; image: number };
  tests: { FAIL_TO_PASS: Spread; PASS_TO_PASS: Spread };
};

export async function inspectDataset(file: VerbatimFile, options: RowOptions = {}): Promise<DatasetFacts> {
  const facts: DatasetFacts = {
    path: file.path,
    form: file.form,
    rows: 0,
    doubled: [],
    columns: Object.create(null),
    families: Object.create(null),
    repositories: Object.create(null),
    gradable: 0,
    ungradable: {},
    without: { patch: 0, problem_statement: 0, FAIL_TO_PASS: 0, image: 0 },
    tests: { FAIL_TO_PASS: null, PASS_TO_PASS: null },
  };
  const seen = new Map<string, number>();
  const sizes = { FAIL_TO_PASS: [] as number[], PASS_TO_PASS: [] as number[] };
  for await (const row of file.rows()) {
    facts.rows += 1;
    const id = idOf(row);
    seen.set(id, (seen.get(id) ?? 0) + 1);
    countColumns(facts.columns, row);
    addOne(facts.repositories, repositoryOf(row));
    const read = readRow(row, options);
    countMissing(facts.without, 'instance' in read ? read.instance : row.value);
    if ('problem' in read) {
      addReason(facts.ungradable, read.problem, `${row.where} (${id})`);
      continue;
    }
    const { instance } = read;
    facts.gradable += 1;
    addOne(facts.families, instance.family);
    sizes.FAIL_TO_PASS.push(instance.FAIL_TO_PASS.length);
    sizes.PASS_TO_PASS.push(instance.PASS_TO_PASS.length);
  }
  facts.doubled = [...seen].flatMap(([id, times]) => (times > 1 ? [id] : []));
  facts.tests = { FAIL_TO_PASS: spreadOf(sizes.FAIL_TO_PASS), PASS_TO_PASS: spreadOf(sizes.PASS_TO_PASS) };
  facts.repositories = sorted(facts.repositories);
  facts.families = sorted(facts.families);
  return facts;
}

/** Counts the missing values. `from`: the instance, or the columns of an ungradable row. */
function countMissing(without: DatasetFacts['without'], from: Readonly<Record<string, unknown>>): void {
  for (const name of ['patch', 'problem_statement', 'FAIL_TO_PASS'] as const) {
    if (isNothing(from[name])) without[name] += 1;
  }
  if (IMAGE_COLUMNS.every((name) => isNothing(from[name]))) without.image += 1;
}

const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === 'string' && /^\s*(?:\[\s*\])?\s*$/.test(value)) ||
  (Array.isArray(value) && value.length === 0);

/** Maximum number of reasons, which bounds the memory if every row has a different reason. */
const MOST_REASONS = 200;

function addReason(reasons: DatasetFacts['ungradable'], reason: string, example: string): void {
  const name =
    Object.hasOwn(reasons, reason) || Object.keys(reasons).length < MOST_REASONS ? reason : 'other reasons';
  reasons[name] ??= { rows: 0, example };
  reasons[name].rows += 1;
}

function countColumns(columns: Record<string, ColumnFacts>, row: VerbatimRow): void {
  for (const [name, value] of Object.entries(row.value)) {
    columns[name] ??= { filled: 0, types: {} };
    const own = columns[name];
    if (value === null || value === undefined) continue;
    own.filled += 1;
    addOne(own.types, typeOf(value));
  }
}

function typeOf(value: unknown): string {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number' || typeof value === 'bigint') return 'number';
  if (typeof value === 'boolean') return 'boolean';
  return Array.isArray(value) ? 'list' : 'object';
}

function addOne(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

const sorted = (counts: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)));
