/** Merges files of predictions, and checks a file as `sb-cli submit` does. */
import { describeProblems, describeValue, type RowProblem, readRows } from '@swefarm/datasets';
import { jsonText, UsageError } from '@swefarm/shared';
import { openTextFile } from '../../export/textfile.ts';

type Prediction = { instance_id: string; model_name_or_path: string; model_patch: string | null };

export type PredictionCheck = {
  predictions: number;
  models: string[];
  empty: number;
  problems: RowProblem[];
};

/**
 * Checks a file of predictions: sb-cli 0.1 refuses several models, repeated instances and missing fields. `known`: the ids of the allowed
 * instances; null: any id.
 * @throws UsageError when the file cannot be read
 */
export async function checkPredictions(
  path: string,
  known: ReadonlySet<string> | null,
): Promise<PredictionCheck> {
  const problems: RowProblem[] = [];
  const seen = new Map<string, string>();
  const models = new Set<string>();
  let empty = 0;
  for await (const found of predictionsIn(path, problems)) {
    const { where, prediction } = found;
    const { instance_id: id, model_name_or_path: model, model_patch: patch } = prediction;
    const earlier = seen.get(id);
    const bad = (expected: string, remedy: string) =>
      problems.push({ where, field: 'instance_id', expected, found: id, remedy });
    if (earlier !== undefined) bad(`an id that differs from ${earlier}`, 'remove one of the two');
    if (known && !known.has(id))
      bad('an id that the dataset has', 'remove it, or name the dataset it is for');
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
 * @throws UsageError with all bad rows of a file, or for an output that exists
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
    for await (const { prediction } of predictionsIn(path, problems)) {
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

async function* predictionsIn(
  path: string,
  problems: RowProblem[],
): AsyncGenerator<{ where: string; prediction: Prediction }> {
  for await (const row of readRows(path)) {
    const problem = 'problem' in row ? row.problem : flawOf(row.where, row.value);
    if (problem) problems.push(problem);
    else if ('value' in row) yield { where: row.where, prediction: row.value as Prediction };
  }
}

function flawOf(where: string, row: Record<string, unknown>): RowProblem | null {
  for (const field of ['instance_id', 'model_name_or_path'] as const) {
    const value = row[field];
    if (typeof value === 'string' && value !== '') continue;
    return { where, field, expected: 'text', found: describeValue(value), remedy: 'add it' };
  }
  const { model_patch: patch } = row;
  if (patch === null || typeof patch === 'string') return null;
  return {
    where,
    field: 'model_patch',
    expected: 'a diff',
    found: describeValue(patch),
    remedy: 'write it as one text',
  };
}
