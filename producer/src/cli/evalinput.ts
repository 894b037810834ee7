/** Reads the input of `eval`: a file of predictions, gold patches, or the failed evaluations of an earlier run. */
import type { Dataset, RowProblem } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';
import {
  GOLD,
  goldPredictions,
  type Prediction,
  readOutputRun,
  readPredictions,
} from '@swefarm/trajectories';
import { readLostEvaluations } from '../eval/lostevaluations.ts';
import type { EvalValues } from './evaloptions.ts';

export type EvalInput = {
  /** Name of the input in messages. */
  name: string;
  /** Valid predictions of the first round, in file order. */
  predictions: readonly Prediction[];
  rounds: readonly (readonly Prediction[])[];
  /** Returns the predictions that the report of a round counts as submitted. */
  all(round: number): readonly Prediction[];
  /** Number of evaluations of each prediction. */
  times: number;
  problems: readonly RowProblem[];
  /** Returns the old result line of a prediction; undefined without `--from`. */
  lineOf(prediction: Prediction): OutputLine | undefined;
};

/** Reads the predictions. Throws UsageError for contradicting flags and unreadable files. */
export async function readEvalInput(
  { predictions: file, from, nTimes: times = 1 }: EvalValues,
  dataset: Dataset,
  signal: AbortSignal,
): Promise<EvalInput> {
  if (times < 1) throw new UsageError('--n-times: expected 1 or more');
  if ((file === undefined) === (from === undefined)) {
    throw new UsageError('give --predictions FILE (or gold), or --from OUTPUT');
  }
  if (from !== undefined) {
    if (times > 1) throw new UsageError('--n-times does not go with --from, which evaluates each patch once');
    const model = (await readOutputRun(from))?.record.policy?.model ?? 'patch';
    const lost = await readLostEvaluations(from, model, dataset.ids);
    return {
      name: from,
      predictions: lost.rounds[0] ?? [],
      rounds: lost.rounds,
      all: (round) => lost.rounds[round] ?? [],
      times,
      problems: lost.problems,
      lineOf: lost.lineOf,
    };
  }
  const name = file ?? GOLD;
  const read =
    name === GOLD
      ? { predictions: goldPredictions(dataset.instances), problems: [] }
      : await readPredictions(name, dataset.ids, signal);
  const { predictions, problems } = read;
  const rounds = Array.from({ length: times }, () => predictions);
  return {
    name,
    predictions,
    rounds,
    all: () => predictions,
    times,
    problems,
    lineOf: () => undefined,
  };
}
