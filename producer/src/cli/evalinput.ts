/** Options and input of `eval`: a file of predictions, gold patches, or the failed evaluations of an earlier run. */
import type { Dataset } from '@swefarm/datasets';
import { UsageError } from '@swefarm/shared';
import { GOLD, goldPredictions, LOGS, readOutputRun, readPredictions } from '@swefarm/trajectories';
import { type LostEvaluations, readLostEvaluations } from '../eval/lostevaluations.ts';
import { defaulted, flag, group, text, type Values, whole } from './declare.ts';
import { DATASET, FARM, GRADING, WORKER_COMMAND, WORKER_RUNTIME } from './options.ts';

const OUTPUT = {
  '--output <file>': text(
    'write result lines too, as JSONL (- is standard output); with --from the old lines with their new verdicts',
  ),
  '--copy-artifacts <dir>': text('copy patches, reports and logs into this folder'),
};

export const EVALUATION = {
  '--predictions <file>': text(
    'JSON or JSONL with instance_id, model_name_or_path and model_patch; or the word gold',
  ),
  '--from <output>': text(
    'instead of predictions: evaluate again the saved patches of this output whose evaluation failed',
  ),
  '--run-id <name>': text(
    'name of folder and report; an instance with a report.json there is not evaluated again',
  ),
  '--max-workers <n>': whole('evaluations at the same time (default: what the machine allows)'),
  '--timeout <seconds>': text('longest time of the tests (default: 1800)'),
  '--n-times <k>': whole('evaluate each prediction k times and name the tests that change their outcome'),
  '--report-dir <dir>': defaulted(text('folder for <model>.<run-id>.json'), '.'),
  '--logs-dir <dir>': defaulted(text("folder for the harness's tree of logs"), LOGS),
  ...OUTPUT,
  ...DATASET,
  ...GRADING,
  ...WORKER_RUNTIME,
  ...group('Worker:', {
    '--no-local-worker': flag('start no worker here; the workers of the farm at --redis-url evaluate'),
  }),
  ...WORKER_COMMAND,
  ...FARM,
};
export type EvalValues = Values<typeof EVALUATION>;

export type EvalInput = LostEvaluations & {
  /** Name of the input in messages. */
  name: string;
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
    return { name: from, ...(await readLostEvaluations(from, model, dataset.ids)) };
  }
  const name = file ?? GOLD;
  const { predictions, problems } =
    name === GOLD
      ? { predictions: goldPredictions(dataset.instances), problems: [] }
      : await readPredictions(name, dataset.ids, signal);
  return { name, rounds: Array.from({ length: times }, () => predictions), oldLines: new Map(), problems };
}
