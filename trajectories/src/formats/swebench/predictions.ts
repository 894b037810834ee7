/** Reads predictions of the SWE-bench harness: JSON (list, or object by id) or JSON Lines. Bad predictions are skipped and reported. */
import { describeValue, type RawRow, type RowProblem, readRows } from '@swefarm/datasets';
import type { Instance } from '@swefarm/shared';

export type Prediction = {
  instance_id: string;
  model_name_or_path: string;
  /** The diff. Null and the empty string are never evaluated. */
  model_patch: string | null;
};

export type Predictions = { predictions: Prediction[]; problems: RowProblem[] };

export const GOLD = 'gold';

export const goldPredictions = (instances: readonly Instance[]): Prediction[] =>
  instances.map(({ instance_id, patch }) => ({
    instance_id,
    model_name_or_path: GOLD,
    model_patch: patch,
  }));

/**
 * Reads predictions in file order, at most one for each instance. `known` contains the ids of all rows of the dataset.
 *
 * @throws UsageError when the file as a whole cannot be read
 */
export async function readPredictions(
  path: string,
  known: ReadonlySet<string>,
  signal?: AbortSignal,
): Promise<Predictions> {
  const predictions: Prediction[] = [];
  const problems: RowProblem[] = [];
  const seen = new Map<string, string>();
  for await (const row of readRows(path, signal)) {
    const read = readPrediction(row, known, seen);
    if ('problem' in read) problems.push(read.problem);
    else {
      predictions.push(read.prediction);
      seen.set(read.prediction.instance_id, row.where);
    }
  }
  return { predictions, problems };
}

function readPrediction(
  row: RawRow,
  known: ReadonlySet<string>,
  seen: ReadonlyMap<string, string>,
): { prediction: Prediction } | { problem: RowProblem } {
  if ('problem' in row) return row;
  const { where, value } = row;
  const bad = (field: string, expected: string, found: string, remedy: string) => ({
    problem: { where, field, expected, found, remedy },
  });
  const { instance_id: id, model_name_or_path: model, model_patch: patch } = value;
  if (typeof id !== 'string' || id === '') {
    return bad('instance_id', 'the id of an instance', describeValue(id), 'add it');
  }
  if (!known.has(id)) {
    return bad('instance_id', 'an id that the dataset has', id, 'remove it, or name the dataset it is for');
  }
  const earlier = seen.get(id);
  if (earlier !== undefined) {
    const found = `${id}, which ${earlier} has too`;
    return bad('instance_id', 'an id that no other prediction has', found, `${earlier} is graded`);
  }
  if (typeof model !== 'string' || !isFolderName(folderOf(model))) {
    return bad(
      'model_name_or_path',
      'a name that can be a folder',
      describeValue(model),
      'name what made the patch',
    );
  }
  if (patch !== null && typeof patch !== 'string') {
    return bad(
      'model_patch',
      'a diff, or null for none',
      describeValue(patch),
      'write the patch as one string',
    );
  }
  return { prediction: { instance_id: id, model_name_or_path: model, model_patch: patch } };
}

/** Returns the name of the harness's folder for a model. */
export const folderOf = (model: string): string => model.replaceAll('/', '__');

/** Returns whether a name is one path component that is short enough for suffixes. */
export const isFolderName = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && Buffer.byteLength(name) <= 180;
