/** Options of outputs, and the checks of existing outputs. */
import { type Instance, type RunRecord, successOf, UsageError } from '@swefarm/shared';
import {
  type Output,
  OutputFormat,
  type OutputLine,
  type OutputRun,
  openOutputFile,
  RESULT_FORMATS,
  readOutputRun,
  renderReward,
  requireNewOutput,
  streamOutput,
  writeOutputRun,
} from '@swefarm/trajectories';
import { choice, defaulted, group, text } from './declare.ts';
import { styled, writeTo } from './terminal.ts';

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

/** Opens an output file. For `-`, prints JSON lines into a pipe, or a readable line for each rollout on a terminal. */
export async function openOutput(path: string, runId: string | null): Promise<Output> {
  if (path !== '-') return await openOutputFile(path, runId);
  if (!process.stdout.isTTY) return streamOutput((text) => writeTo(process.stdout, text));
  return streamOutput(async (text) => {
    for (const line of text.trimEnd().split('\n')) {
      await writeTo(process.stdout, `\r\u001b[2K${humanLine(JSON.parse(line) as OutputLine)}\n`);
    }
  });
}

function humanLine(line: OutputLine): string {
  const paint = (style: 'green' | 'red' | 'yellow', text: string) => styled(style, text, process.stdout);
  const mark =
    line.outcome === 'judged'
      ? line.resolved === null && line.reward !== null
        ? paint('green', '• scored    ')
        : successOf(line)
          ? paint('green', '✓ resolved  ')
          : paint('red', line.resolved ? '✗ unrewarded' : '✗ unresolved')
      : paint('yellow', `! ${line.outcome.padEnd(10)}`);
  const end = line.failure
    ? `${line.failure.stage}/${line.failure.class}: ${line.failure.message}`
    : `reward ${renderReward(line.reward)}, ${line.turns} turns, ${line.exit_status ?? 'done'}`;
  return `${mark} ${line.instance_id} #${line.rollout_index}  ${end}, ${line.seconds.total.toFixed(1)} s`;
}
