/** The options of outputs, and the decision whether an existing output may be resumed. */
import { UsageError } from '@swefarm/shared';
import {
  OutputFormat,
  type OutputRun,
  RESULT_FORMATS,
  readOutputRun,
  requireNewOutput,
} from '@swefarm/trajectories';
import { type Command, Option } from 'commander';
import type { Flags } from './options.ts';

const option = (flag: string, help: string): Option => new Option(flag, help).helpGroup('Output:');

export function addOutputOptions(command: Command): Command {
  return addOutputFormats(
    command.addOption(
      option('--output <file>', 'file for the result lines, as JSONL; - is standard output').default('-'),
    ),
  );
}

/** The same for a command that writes an output only on request. */
export function addOptionalOutput(command: Command): Command {
  return addOutputFormats(
    command.addOption(
      option('--output <file>', 'also collect the results into this file, until the run is done'),
    ),
  );
}

const addOutputFormats = (command: Command): Command =>
  command
    .addOption(
      option(
        '--output-format <format>',
        "swefarm: one line per result; gym: the files of NeMo Gym's collector",
      )
        .choices(OutputFormat.options)
        .default('swefarm'),
    )
    .addOption(option('--copy-artifacts <dir>', 'copy trajectories and reports into this folder'));

/** The format of the results. Throws UsageError for several files to standard output. */
export function readOutputFormat(flags: Flags): OutputFormat {
  const format = OutputFormat.parse(flags.outputFormat);
  if (RESULT_FORMATS[format].severalFiles && (flags.output === '-' || flags.output === undefined)) {
    throw new UsageError(`--output-format ${format} writes several files: add --output FILE.jsonl`);
  }
  return format;
}

/** The run of an output to resume; null for a new output. Throws UsageError for an existing output without --resume. */
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
