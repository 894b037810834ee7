/** Reads and writes the file of result lines and the files beside it: the run's record, and the position in the run's stream. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseJsonLines } from '@swefarm/datasets';
import { type ArtifactContent, errorMessage, type Result, RunRecord, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import {
  ignoreMissing,
  inFolder,
  openAppending,
  readCursor,
  readIfThere,
  replaceRecord,
  writeCursor,
  writing,
} from './appendfile.ts';
import { encodeLine, type LineSummary, lineSummaryOf, type OutputLine } from './line.ts';

/** Formats of the lines; formats/results.ts implements them. */
export const OutputFormat = z.enum(['swefarm', 'gym']);
export type OutputFormat = z.infer<typeof OutputFormat>;

/** Evaluation whose lines `swefarm eval` writes. The same command resumes it. */
const OutputEvaluation = z.object({
  /** Name of the run in the harness's folder tree (`--run-id`). */
  run_id: z.string(),
  /** Record of the evaluation's run in the farm. With `--from`, the lines belong to an earlier run. */
  record: RunRecord,
  rollouts: z.array(z.string()),
  patches_sha256: z.string(),
  /** True with `--from`: the lines are lines of the earlier run with new verdicts. */
  mends: z.boolean(),
});
export type OutputEvaluation = z.infer<typeof OutputEvaluation>;

/** Record of an output, stored beside it as `OUTPUT.run.json`. */
export const OutputRun = z.object({
  format: z.literal('swefarm-output-1'),
  record: RunRecord,
  /** Folder of the Redis that was started for this output; null when the user specified a Redis. */
  state_dir: z.string().nullable(),
  rows: OutputFormat.default('swefarm'),
  evaluation: OutputEvaluation.optional(),
  /** Tag of the set (`--set`). */
  tag: z.string().optional(),
  /** True if rollouts were queued as results arrived, so the record does not have the number of rollouts. */
  as_needed: z.boolean().optional(),
  /** True if the rollouts of an instance ended at the first success, so rates over them do not estimate the model. */
  until_resolved: z.boolean().optional(),
});
export type OutputRun = z.infer<typeof OutputRun>;

/** Destination of lines: a file that can be resumed, or standard output. */
export interface Output extends AsyncDisposable {
  /** Name of the output in messages. */
  readonly name: string;
  /** Lines of the file by rollout id; `append` adds to them. */
  readonly lines: ReadonlyMap<string, LineSummary>;
  /** Last id of the run's stream whose result is in the file; `0` at the start. */
  readonly cursor: string;
  /** Receives the result and the artifact before `append` gets the line, for formats that need more than the line. */
  take?(result: Result, content: ArtifactContent | null): void;
  /** Writes whole lines to disk, then advances the cursor. */
  append(lines: readonly OutputLine[], cursor: string): Promise<void>;
}

export const runFile = (path: string): string => `${path}.run.json`;

/** Throws UsageError if the output or its record exists and is not empty. `remedy` describes how this command could continue the file. */
export async function requireNewOutput(path: string, remedy?: string): Promise<void> {
  for (const one of [path, runFile(path)]) {
    const found = await stat(one).catch(ignoreMissing);
    if (found && found.size > 0) {
      throw new UsageError(
        `${one}: exists already; ${remedy === undefined ? '' : `${remedy}, or `}choose another --output`,
        { code: 'output_exists' },
      );
    }
  }
}

/** Returns the record beside an output; null when there is none. Throws UsageError when the record is unreadable. */
export async function readOutputRun(path: string): Promise<OutputRun | null> {
  const text = await readIfThere(runFile(path));
  if (text === null) return null;
  try {
    return OutputRun.parse(JSON.parse(text));
  } catch (error) {
    throw new UsageError(`${runFile(path)}: is damaged (${errorMessage(error)}); it cannot be resumed`, {
      cause: error,
    });
  }
}

export async function writeOutputRun(path: string, run: z.input<typeof OutputRun>): Promise<void> {
  await inFolder(path, () => replaceRecord(runFile(path), JSON.stringify(run, null, 2)));
}

/**
 * Opens a file for appending, removes an incomplete last line, and reads all lines. `runId` null: lines of any run, without a cursor.
 * @throws UsageError when the file has lines of another run or is not an output; UnusableError when it cannot be written
 */
export async function openOutputFile(path: string, runId: string | null): Promise<Output> {
  const name = resolve(path);
  const file = await openAppending(path, '{"run_id":"');
  try {
    return createOutput({
      name,
      lines: await readLines(path, runId),
      cursor: runId === null ? '0' : await readCursor(path, runId),
      runId,
      write: (added) =>
        writing(name, async () => {
          await file.appendFile(linesText(added));
          await file.datasync();
        }),
      close: () => file.close(),
    });
  } catch (error) {
    await file.close();
    throw error;
  }
}

type OutputParts = Pick<Output, 'name' | 'take'> & {
  lines?: Map<string, LineSummary>;
  cursor?: string;
  /** Run whose cursor is stored beside the file `name`; null or absent: no cursor is stored. */
  runId?: string | null;
  /** Writes at least one line. */
  write(added: readonly OutputLine[]): Promise<void>;
  close(): Promise<void>;
};

/** Creates an output whose lines and cursor advance after each write. */
export function createOutput({ write, close, runId = null, ...parts }: OutputParts): Output {
  const lines = parts.lines ?? new Map<string, LineSummary>();
  const output = {
    ...parts,
    lines,
    cursor: parts.cursor ?? '0',
    async append(added: readonly OutputLine[], cursor: string): Promise<void> {
      if (added.length > 0) await write(added);
      if (runId !== null && cursor !== output.cursor)
        await writing(parts.name, () => writeCursor(parts.name, runId, cursor));
      for (const line of added) lines.set(line.rollout_id, lineSummaryOf(line));
      output.cursor = cursor;
    },
    [Symbol.asyncDispose]: close,
  };
  return output;
}

/** Creates an output that cannot be resumed, such as standard output. `write` resolves when the destination has accepted the text. */
export const streamOutput = (write: (text: string) => Promise<void>): Output =>
  createOutput({
    name: 'standard output',
    write: (added) => write(linesText(added)),
    // Standard output stays open, because other parts of the process use it.
    close: () => Promise.resolve(),
  });

const linesText = (lines: readonly OutputLine[]): string =>
  lines.map((line) => `${encodeLine(line)}\n`).join('');

async function readLines(path: string, runId: string | null): Promise<Map<string, LineSummary>> {
  const lines = new Map<string, LineSummary>();
  for await (const row of parseJsonLines(createReadStream(path))) {
    const line = 'value' in row ? (row.value as Partial<OutputLine>) : null;
    if (typeof line?.rollout_id !== 'string') {
      throw new UsageError(`${path}: ${row.where} is no line of an output; choose another file`);
    }
    if (runId !== null && line.run_id !== runId) {
      throw new UsageError(
        `${path}: ${row.where} belongs to run ${line.run_id}, not to ${runId}; choose another --output`,
      );
    }
    lines.set(line.rollout_id, lineSummaryOf(line as OutputLine));
  }
  return lines;
}
