/** Converts a dataset row to an Instance, by the reader of its family (`families/registry.ts`). */
import { Instance, SetName } from '@swefarm/shared';
import type { InstanceDraft, RowContext, RowOptions } from './families/family.ts';
import { familyOf } from './families/registry.ts';
import { asObject, FieldReader, isRow, type Row } from './fields/fields.ts';
import { describeValue, type RowProblem } from './problem.ts';

export type { RowOptions } from './families/family.ts';

type RowRead = { instance: Instance; warnings: string[] } | { problems: RowProblem[] };

/** A row whose family is known and whose fields are not read yet. */
type OpenedRow = {
  /** `id` and `repo`: values of the columns that contain id and repository in this family. The values are unchecked. */
  id: unknown;
  repo: unknown;
  read(): RowRead;
};

/** Detects the family of a row. `where` is the position in messages, such as `line 3`. */
export function openRow(where: string, given: Row, options: RowOptions = {}): OpenedRow {
  const { row, dataset, problem } = unwrap(given);
  const context: RowContext = { ...options, wrappedDataset: dataset };
  const filled = withoutNulls(row);
  const family = familyOf(filled, context);
  const { id, repo } = family.names?.(filled) ?? { id: row.instance_id, repo: row.repo };
  return {
    id,
    repo,
    read() {
      if (problem) return { problems: [{ where, ...problem }] };
      const read = new FieldReader(where, row);
      const instance = { ...family.read(read, context), ...setNames(read, { ...row, ...given }) };
      return read.problems.length > 0 ? { problems: read.problems } : checked(read, instance);
    },
  };
}

/** Returns the names of the prompt set and the toolset that a row chooses. Columns of these names with other contents are not ours. */
function setNames(read: FieldReader, row: Row): Pick<InstanceDraft, 'prompts' | 'toolset'> {
  const names: Pick<InstanceDraft, 'prompts' | 'toolset'> = {};
  for (const column of ['prompts', 'toolset'] as const) {
    const name = row[column];
    if (typeof name !== 'string') continue;
    if (SetName.safeParse(name).success) names[column] = name;
    else
      read.complain(column, 'the name of a set of the run', name, 'give its file to --prompts or --toolset');
  }
  return names;
}

/** Removes null columns: in a file with several families, a row has null in the columns of the other families. */
const withoutNulls = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));

export const toInstance = (where: string, row: Row, options: RowOptions = {}): RowRead =>
  openRow(where, row, options).read();

/** Validates the instance. Each value that the schema rejects becomes a problem of the row. */
function checked(read: FieldReader, instance: InstanceDraft): RowRead {
  const parsed = Instance.safeParse(instance);
  if (parsed.success) return { instance: parsed.data, warnings: read.warnings };
  for (const issue of parsed.error.issues) {
    const value = issue.path.reduce<unknown>(
      (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
      instance,
    );
    read.complain(issue.path.join('.'), issue.message, value, 'mend the columns that this is made of');
  }
  return { problems: read.problems };
}

type Unwrapped = {
  row: Row;
  /** Name of the dataset in the wrapper; null for a row without wrapper. */
  dataset: string | null;
  problem?: Omit<RowProblem, 'where'>;
};

/**
 * Unwraps rows of NeMo Gym's swe_agents, which contain the dataset row as JSON text in the metadata of a request. As in Gym's
 * `run_swe_agents`, fields of the metadata override the columns of the text. Columns beside the wrapper override both if
 * `problem_statement` or `FAIL_TO_PASS` is one of them.
 */
function unwrap(row: Row): Unwrapped {
  const metadata = asRow(asRow(row.responses_create_params)?.metadata);
  const text = metadata?.instance_dict;
  if (metadata === null || text === undefined || text === null) return { row, dataset: null };
  const dataset = typeof metadata.dataset_name === 'string' ? metadata.dataset_name : '';
  const inner = asObject(text);
  const { responses_create_params: _, ...beside } = row;
  const own = row.problem_statement !== undefined || row.FAIL_TO_PASS !== undefined ? beside : {};
  if (inner) return { row: { ...inner, ...named(metadata), ...own }, dataset };
  if (own === beside) return { row, dataset };
  return {
    row: { ...named(metadata) },
    dataset,
    problem: {
      field: 'responses_create_params.metadata.instance_dict',
      expected: 'the JSON text of an object',
      found: describeValue(text),
      remedy: 'write the whole dataset row there',
    },
  };
}

const asRow = (value: unknown): Row | null => (isRow(value) ? value : null);

/** Returns the fields of the metadata under the names of dataset columns. */
function named(metadata: Row): Row {
  const { instance_id, base_commit, problem_statement, golden_patch, dataset_name } = metadata;
  const gym = typeof dataset_name === 'string' && /swe-?gym/i.test(dataset_name);
  const fields = {
    instance_id,
    base_commit,
    problem_statement,
    patch: golden_patch,
    subset: gym ? 'gym' : undefined,
  };
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  );
}
