/** Options of outputs, and the checks of existing outputs. */
import { type Instance, type RunRecord, UsageError } from '@swefarm/shared';
import {
  type Output,
  OutputFormat,
  type OutputRun,
  RESULT_FORMATS,
  readOutputRun,
  requireNewOutput,
  writeOutputRun,
} from '@swefarm/trajectories';
import { choice, defaulted, group, text } from './declare.ts';
import { openOutput } from './follow.ts';

const FORMATS = {
  '--output-format <format>': defaulted(
    choice("swefarm: one line per result; gym: the files of NeMo Gym's collector", OutputFormat.options),
    'swefarm',
  ),
  '--copy-artifacts <dir>': text('copy trajectories and reports into this folder'),
};

export const OUTPUT = group('Output:', {
  '--output <file>': defaulted(text('file for the result lines, as JSONL; - is standard output'), '-'),
  ...FORMATS,
});

/** Output options of a command that writes an output only on request. */
export const OPTIONAL_OUTPUT = group('Output:', {
  '--output <file>': text('also collect the results into this file, until the run is done'),
  ...FORMATS,
});

/** Throws UsageError for a format with several files if `path` is not a file. */
export function checkOutputFormat(format: OutputFormat, path: string | undefined): void {
  if (RESULT_FORMATS[format].severalFiles && (path === '-' || path === undefined)) {
    throw new UsageError(`--output-format ${format} writes several files: add --output FILE.jsonl`);
  }
}

/** Returns the run of an output to resume; null for a new output. Throws UsageError for an existing output without --resume. */
export async function readResumedRun(
  path: string,
  rows: OutputFormat,
  resume: boolean,
): Promise<OutputRun | null> {
  if (path === '-') {
    if (resume) throw new UsageError('--resume needs the --output file of the run to continue');
    return null;
  }
  const stored = resume ? await readOutputRun(path) : null;
  if (!stored) {
    await requireNewOutput(path, 'pass --resume to continue its run');
    return null;
  }
  if (stored.rows !== rows) {
    throw new UsageError(`${path}: was begun with --output-format ${stored.rows}; give the same again`);
  }
  return stored;
}

/** Throws UsageError when the output belongs to another run. */
export function requireSameRun(path: string, runId: string, stored: OutputRun | null): void {
  if (stored && stored.record.run_id !== runId) {
    throw new UsageError(
      `${path}: belongs to run ${stored.record.run_id}, not to ${runId}; choose another --output`,
    );
  }
}

/** Opens the output of a run. Beside a file, also stores the record of the run. */
export async function openRunOutput(
  path: string,
  run: OutputRun & { record: RunRecord },
  instances: () => Promise<readonly Instance[]>,
): Promise<Output> {
  if (path === '-') return await openOutput(path, run.record.run_id);
  await writeOutputRun(path, run);
  return await RESULT_FORMATS[run.rows].open(path, run.record, instances);
}
