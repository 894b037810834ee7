/** Unwraps rows of NeMo Gym's swe_agents, which contain the dataset row as JSON text in the metadata of a request. */
import { asObject, isRow, type Row } from './fields/fields.ts';
import { describeValue, type RowProblem } from './fields/problem.ts';

export type Unwrapped = {
  row: Row;
  /** Name of the dataset in the wrapper; null for a row without wrapper. */
  dataset: string | null;
  problem?: Omit<RowProblem, 'where'>;
};

/**
 * Returns the row inside the wrapper, or `row` if it has no wrapper. As in Gym's `run_swe_agents`, columns beside the wrapper override the
 * fields of the metadata, and fields of the metadata override the columns of the text.
 */
export function unwrap(row: Row): Unwrapped {
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
