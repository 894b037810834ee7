/**
 * The file that results are appended to, and the files beside it, which record its run and how far the run's stream was
 * read.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseJsonLines } from '@swefarm/datasets';
import { type ArtifactContent, errorMessage, type Result, RunRecord, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import {
  inFolder,
  openAppending,
  readCursor,
  readText,
  replaceRecord,
  unwritable,
  writeCursor,
} from './appendfile.ts';
import { encodeLine, type LineSummary, lineSummaryOf, type OutputLine } from './line.ts';

/** swefarm's own lines, or a foreign format of formats/registry.ts. */
export const OutputFormat = z.enum(['swefarm', 'gym']);
export type OutputFormat = z.infer<typeof OutputFormat>;

/** The evaluation whose lines `swefarm eval` writes; the same command resumes it. */
const OutputEvaluation = z.object({
  /** `--run-id`: the run's name in the harness's tree. */
  run_id: z.string(),
  /** The evaluation's run in the farm; with `--from` the lines belong to an earlier run. */
  record: RunRecord,
  /** All rollouts that it evaluates, and the fingerprint of their patches. */
  rollouts: z.array(z.string()),
  patches_sha256: z.string(),
  /** With `--from`: the lines are those of the earlier run with new verdicts. */
  mends: z.boolean(),
});
export type OutputEvaluation = z.infer<typeof OutputEvaluation>;

/** Stored beside the output as `OUTPUT.run.json`. */
export const OutputRun = z.object({
  format: z.literal('swefarm-output-1'),
  record: RunRecord,
  /** Folder of the Redis that was started for this output; null when the user gave a Redis. */
  state_dir: z.string().nullable(),
  /** The format of its lines. */
  rows: OutputFormat.default('swefarm'),
  evaluation: OutputEvaluation.optional(),
  /** The set of a collection that it holds. */
  tag: z.string().optional(),
  /** Rollouts were queued as results came: the run's record does not say how many there should be. */
  as_needed: z.boolean().optional(),
  /** The rollouts of an instance ended with a success: no rate over them estimates what the model can. */
  until_resolved: z.boolean().optional(),
});
export type OutputRun = z.infer<typeof OutputRun>;

/** Where lines go: a file that can be resumed, or standard output. */
export interface Output extends AsyncDisposable {
  /** For messages. */
  readonly name: string;
  /** Lines that the file has, by rollout id; grows with `append`. */
  readonly lines: ReadonlyMap<string, LineSummary>;
  /** Last stream id whose result is in the file; `0` at the start. */
  readonly cursor: string;
  /** Receives the fields that a line omits, before `append` gets the line; for outputs that write more than lines. */
  take?(result: Result, content: ArtifactContent | null): void;
  /** Writes whole lines to disk, then advances the cursor. */
  append(lines: readonly OutputLine[], cursor: string): Promise<void>;
}

export const runFile = (path: string): string => `${path}.run.json`;

/**
 * Refuses a path that holds something: a new output must not exist or must be empty. `remedy`: how this command could continue
 * the existing output.
 *
 * @throws UsageError
 */
export async function requireNewOutput(path: string, remedy?: string): Promise<void> {
  for (const one of [path, runFile(path)]) {
    const size = await sizeOf(one);
    if (size !== null && size > 0) {
      throw new UsageError(
        `${one}: exists already; ${remedy === undefined ? '' : `${remedy}, or `}choose another --output`,
        { code: 'output_exists' },
      );
    }
  }
}

/** What was written when the output's run began; null when there is no such file. Throws UsageError when it is unreadable. */
export async function readOutputRun(path: string): Promise<OutputRun | null> {
  const text = await readText(runFile(path));
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
 * Opens a file for appending, repairs a torn last line, and reads its lines. `runId` null: lines of any runs, without a cursor
 * in a run's stream.
 *
 * @throws UsageError when the file holds lines of another run or is not an output; UnusableError when it cannot be written
 */
export async function openOutputFile(path: string, runId: string | null): Promise<Output> {
  const file = await openAppending(path, '{"run_id":"');
  try {
    const lines = await readLines(path, runId);
    const cursor = runId === null ? '0' : await readCursor(path, runId);
    return new OutputFile(resolve(path), file, lines, cursor, runId);
  } catch (error) {
    await file.close();
    throw error;
  }
}

class OutputFile implements Output {
  readonly name: string;
  readonly lines: Map<string, LineSummary>;
  cursor: string;
  readonly #file: FileHandle;
  readonly #runId: string | null;

  constructor(
    name: string,
    file: FileHandle,
    lines: Map<string, LineSummary>,
    cursor: string,
    runId: string | null,
  ) {
    this.name = name;
    this.lines = lines;
    this.cursor = cursor;
    this.#file = file;
    this.#runId = runId;
  }

  async append(lines: readonly OutputLine[], cursor: string): Promise<void> {
    try {
      if (lines.length > 0) {
        await this.#file.appendFile(lines.map((line) => `${encodeLine(line)}\n`).join(''));
        await this.#file.datasync();
      }
      for (const line of lines) this.lines.set(line.rollout_id, lineSummaryOf(line));
      if (cursor !== this.cursor && this.#runId !== null) {
        await writeCursor(this.name, this.#runId, cursor);
      }
      this.cursor = cursor;
    } catch (error) {
      throw unwritable(this.name, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

/** Writes lines to standard output (or any sink), which cannot be resumed. `write` resolves when the sink took the text. */
export function streamOutput(write: (text: string) => Promise<void>): Output {
  const lines = new Map<string, LineSummary>();
  const output = {
    name: 'standard output',
    lines,
    cursor: '0',
    async append(added: readonly OutputLine[], cursor: string): Promise<void> {
      if (added.length > 0) await write(added.map((line) => `${encodeLine(line)}\n`).join(''));
      for (const line of added) lines.set(line.rollout_id, lineSummaryOf(line));
      output.cursor = cursor;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      // Standard output belongs to the process and stays open.
    },
  };
  return output;
}

/** Reads the lines of an output one at a time and keeps them without their patches. */
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

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
