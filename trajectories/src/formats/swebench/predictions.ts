/** Reads, checks and merges predictions of the SWE-bench harness: JSON (list, or object by id) or JSON Lines. */
import { describeProblems, describeValue, type RowProblem, readRows } from '@swefarm/datasets';
import { type Instance, jsonText, UsageError } from '@swefarm/shared';
import { openTextFile } from '../../export/textfile.ts';

export type Prediction = {
  instance_id: string;
  model_name_or_path: string;
  /** The diff. Null and the empty string are never evaluated. */
  model_patch: string | null;
};

export const GOLD = 'gold';

export const goldPredictions = (instances: readonly Instance[]): Prediction[] =>
  instances.map(({ instance_id, patch }) => ({
    instance_id,
    model_name_or_path: GOLD,
    model_patch: patch,
  }));

type Rule = {
  field: keyof Prediction;
  isValid: (value: unknown) => boolean;
  expected: string;
  remedy: string;
};

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isPatch = (value: unknown): boolean => value === null || typeof value === 'string';

/** Yields the predictions that follow the rules. Adds a problem for each other row. */
async function* predictionsIn(
  path: string,
  rules: readonly Rule[],
  problems: RowProblem[],
  signal?: AbortSignal,
): AsyncGenerator<{ where: string; prediction: Prediction }> {
  for await (const row of readRows(path, signal)) {
    if ('problem' in row) problems.push(row.problem);
    else {
      const { where, value } = row;
      const broken = rules.find(({ field, isValid }) => !isValid(value[field]));
      if (!broken) yield { where, prediction: value as Prediction };
      else {
        const { field, expected, remedy } = broken;
        problems.push({ where, field, expected, found: describeValue(value[field]), remedy });
      }
    }
  }
}

function idProblem(where: string, expected: string, found: string, remedy: string): RowProblem {
  return { where, field: 'instance_id', expected, found, remedy };
}

const unknownId = (where: string, id: string): RowProblem =>
  idProblem(where, 'an id that the dataset has', id, 'remove it, or name the dataset it is for');

const GRADABLE: readonly Rule[] = [
  { field: 'instance_id', isValid: isText, expected: 'the id of an instance', remedy: 'add it' },
  {
    field: 'model_name_or_path',
    isValid: (model) => typeof model === 'string' && isFolderName(folderOf(model)),
    expected: 'a name that can be a folder',
    remedy: 'name what made the patch',
  },
  {
    field: 'model_patch',
    isValid: isPatch,
    expected: 'a diff, or null for none',
    remedy: 'write the patch as one string',
  },
];

/**
 * Reads predictions in file order, at most one for each instance. Bad predictions are skipped and reported. `known` contains the ids of all
 * rows of the dataset.
 *
 * @throws UsageError when the file as a whole cannot be read
 */
export async function readPredictions(
  path: string,
  known: ReadonlySet<string>,
  signal?: AbortSignal,
): Promise<{ predictions: Prediction[]; problems: RowProblem[] }> {
  const predictions: Prediction[] = [];
  const problems: RowProblem[] = [];
  const seen = new Map<string, string>();
  for await (const { where, prediction } of predictionsIn(path, GRADABLE, problems, signal)) {
    const { instance_id: id, model_name_or_path, model_patch } = prediction;
    const earlier = seen.get(id);
    if (!known.has(id)) problems.push(unknownId(where, id));
    else if (earlier !== undefined) {
      const found = `${id}, which ${earlier} has too`;
      problems.push(idProblem(where, 'an id that no other prediction has', found, `${earlier} is graded`));
    } else {
      predictions.push({ instance_id: id, model_name_or_path, model_patch });
      seen.set(id, where);
    }
  }
  return { predictions, problems };
}

const SUBMITTABLE: readonly Rule[] = [
  { field: 'instance_id', isValid: isText, expected: 'text', remedy: 'add it' },
  { field: 'model_name_or_path', isValid: isText, expected: 'text', remedy: 'add it' },
  { field: 'model_patch', isValid: isPatch, expected: 'a diff', remedy: 'write it as one text' },
];

/**
 * Checks a file of predictions: sb-cli 0.1 refuses several models, repeated instances and missing fields. `known`: the ids of the allowed
 * instances; null: any id.
 * @throws UsageError when the file cannot be read
 */
export async function checkPredictions(
  path: string,
  known: ReadonlySet<string> | null,
): Promise<{ predictions: number; models: string[]; empty: number; problems: RowProblem[] }> {
  const problems: RowProblem[] = [];
  const seen = new Map<string, string>();
  const models = new Set<string>();
  let empty = 0;
  for await (const { where, prediction } of predictionsIn(path, SUBMITTABLE, problems)) {
    const { instance_id: id, model_name_or_path: model, model_patch: patch } = prediction;
    const earlier = seen.get(id);
    if (earlier !== undefined)
      problems.push(idProblem(where, `an id that differs from ${earlier}`, id, 'remove one of the two'));
    if (known && !known.has(id)) problems.push(unknownId(where, id));
    seen.set(id, earlier ?? where);
    models.add(model);
    if (patch === null || patch.trim() === '') empty += 1;
  }
  if (models.size > 1) {
    problems.push({
      ...{ where: 'the file', field: 'model_name_or_path', expected: 'one model' },
      found: [...models].sort().join(', '),
      remedy: 'submit a file for each model',
    });
  }
  return { predictions: seen.size, models: [...models], empty, problems };
}

/**
 * Writes the first prediction of each instance. `again` is the number of repeated predictions, which are omitted.
 *
 * @throws UsageError with all bad rows of a file, for an output that exists, or if no prediction was found
 */
export async function mergePredictions(
  paths: readonly string[],
  out: string,
): Promise<{ written: number; again: number }> {
  const seen = new Set<string>();
  let again = 0;
  await using file = await openTextFile(out);
  for (const path of paths) {
    const problems: RowProblem[] = [];
    for await (const { prediction } of predictionsIn(path, SUBMITTABLE, problems)) {
      if (seen.has(prediction.instance_id)) again += 1;
      else await file.write(`${jsonText(prediction)}\n`);
      seen.add(prediction.instance_id);
    }
    if (problems.length > 0) throw new UsageError(describeProblems(path, problems, 'nothing was written'));
  }
  if (seen.size === 0) throw new UsageError('no prediction was found; nothing was written');
  await file.finish();
  return { written: seen.size, again };
}

/** Returns the name of the harness's folder for a model. */
export const folderOf = (model: string): string => model.replaceAll('/', '__');

/** Returns whether a name is one path component that is short enough for suffixes. */
export const isFolderName = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && Buffer.byteLength(name) <= 180;
