import { LOGS } from '@swefarm/trajectories';
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
