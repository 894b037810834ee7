/**
 * Writes an output as the files of Gym's collector: rows with a verdict in `X.jsonl`, the others in `X_failures.jsonl`, all
 * requested rows in `X_materialized_inputs.jsonl`, the profile in `X_aggregate_metrics.json`. Each row carries swefarm's own line
 * under `swefarm`, so that reports can read it and a resumed collection knows which rollouts it has.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import { parse, resolve } from 'node:path';
import { parseJsonLines } from '@swefarm/datasets';
import {
  type ArtifactContent,
  type Instance,
  jsonText,
  type Result,
  type RunRecord,
  replaceFile,
  startedGroup,
  UsageError,
} from '@swefarm/shared';
import {
  inFolder,
  openAppending,
  readCursor,
  replaceRecord,
  unwritable,
  writeCursor,
} from '../../output/appendfile.ts';
import { type LineSummary, lineSummaryOf, type OutputLine } from '../../output/line.ts';
import type { Output } from '../../output/output.ts';
import { aggregate } from './aggregate.ts';
import { type Answer, answerPieces, type Piece, verdictOf } from './answer.ts';
import { AGENT_REF, type InputRow, inputRow } from './inputs.ts';
import { unjudgedCause } from './unjudged.ts';

/** The files beside `X.jsonl`, named as Gym's collector names them (nemo_gym/path_utils.py). */
export function gymFiles(path: string): { failures: string; inputs: string; metrics: string } {
  const { dir, name } = parse(resolve(path));
  const beside = (end: string): string => `${dir}/${name}_${end}`;
  return {
    failures: beside('failures.jsonl'),
    inputs: beside('materialized_inputs.jsonl'),
    metrics: beside('aggregate_metrics.json'),
  };
}

/** The small fields of a row that `/aggregate_metrics` gets. */
type Facts = Parameters<typeof aggregate>[0][number];

const HEAD = '{"_ng_task_index":';
/** Rows are written in blocks of about this many bytes. */
const BLOCK_BYTES = 1024 * 1024;

/**
 * Opens new files, or those of a run to resume, which must hold rollouts of that run only.
 *
 * @throws UsageError when a file holds something else; UnusableError when one cannot be written
 */
export async function openGymOutput(
  path: string,
  record: RunRecord,
  instances: readonly Instance[],
): Promise<Output> {
  const files = gymFiles(path);
  await using opened = new AsyncDisposableStack();
  const open = async (name: string): Promise<FileHandle> => {
    const file = await openAppending(name, HEAD);
    opened.defer(() => file.close());
    return file;
  };
  const rows = await open(path);
  const failures = await open(files.failures);
  const lines = new Map<string, LineSummary>();
  const facts: Facts[] = [];
  for (const name of [path, files.failures]) await readRows(name, record.run_id, lines, facts);
  const asked = await writeInputs(files.inputs, record, instances);
  const inputs = await open(files.inputs);
  const cursor = await readCursor(resolve(path), record.run_id);
  return new GymOutput({
    name: resolve(path),
    metrics: files.metrics,
    record,
    instances: new Map(instances.map((instance, task) => [instance.instance_id, { instance, task }])),
    rows,
    failures,
    inputs,
    asked,
    lines,
    facts,
    cursor,
    stack: opened.move(),
  });
}

type State = {
  name: string;
  metrics: string;
  record: RunRecord;
  instances: ReadonlyMap<string, { instance: Instance; task: number }>;
  rows: FileHandle;
  failures: FileHandle;
  inputs: FileHandle;
  /** `task/rollout` of the rows in the inputs file. */
  asked: Set<string>;
  lines: Map<string, LineSummary>;
  facts: Facts[];
  cursor: string;
  stack: AsyncDisposableStack;
};

class GymOutput implements Output {
  readonly #state: State;
  readonly #taken = new Map<string, { result: Result; content: ArtifactContent | null }>();

  constructor(state: State) {
    this.#state = state;
  }

  get name(): string {
    return this.#state.name;
  }

  get lines(): ReadonlyMap<string, LineSummary> {
    return this.#state.lines;
  }

  get cursor(): string {
    return this.#state.cursor;
  }

  take(result: Result, content: ArtifactContent | null): void {
    this.#taken.set(result.rollout_id, { result, content });
  }

  async append(lines: readonly OutputLine[], cursor: string): Promise<void> {
    const state = this.#state;
    try {
      for (const line of lines) await this.#write(line);
      if (lines.length > 0) await Promise.all([state.rows.datasync(), state.failures.datasync()]);
      for (const line of lines) state.lines.set(line.rollout_id, lineSummaryOf(line));
      if (cursor !== state.cursor) await writeCursor(state.name, state.record.run_id, cursor);
      state.cursor = cursor;
    } catch (error) {
      throw unwritable(state.name, error);
    }
  }

  async #write(line: OutputLine): Promise<void> {
    const { instances, record, asked, inputs, rows, failures, facts } = this.#state;
    const known = instances.get(line.instance_id);
    const taken = this.#taken.get(line.rollout_id);
    this.#taken.delete(line.rollout_id);
    if (!known || !taken) throw new Error(`${line.rollout_id}: a line of no instance of the run`);
    const row = inputRow(known.instance, record, known.task, line.rollout_index);
    // The farm opened this rollout later, in place of a lost one.
    if (!asked.has(keyOf(row))) {
      await inputs.appendFile(`${jsonText(row)}\n`);
      asked.add(keyOf(row));
    }
    const answer = answerOf(row, taken, known.instance, record);
    await writePieces(answer.unjudged ? failures : rows, rowPieces(row, line, answer));
    if (!answer.unjudged) facts.push({ ...placeOf(row), reward: line.reward ?? 0, ...verdictOf(answer) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { facts, metrics, stack } = this.#state;
    await using _files = stack;
    const ordered = facts.toSorted(
      (a, b) =>
        (a._ng_task_index ?? 0) - (b._ng_task_index ?? 0) ||
        Number(a._ng_rollout_index) - Number(b._ng_rollout_index),
    );
    await inFolder(metrics, () =>
      replaceRecord(metrics, jsonText([{ agent_ref: AGENT_REF, ...aggregate(ordered) }], 2)),
    );
  }
}

const placeOf = ({ _ng_task_index, _ng_rollout_index }: InputRow) => ({ _ng_task_index, _ng_rollout_index });

const keyOf = (row: Pick<InputRow, '_ng_task_index' | '_ng_rollout_index'>): string =>
  `${row._ng_task_index}/${row._ng_rollout_index}`;

function answerOf(
  row: InputRow,
  { result, content }: { result: Result; content: ArtifactContent | null },
  instance: Instance,
  record: RunRecord,
): Answer {
  const cause = unjudgedCause(result);
  return {
    row,
    result,
    content,
    repo: instance.repo,
    evaluationTimeout: record.evaluation.timeout,
    // A cancelled rollout has a row, unlike one that the collector killed, because the farm recorded it.
    unjudged: cause && {
      ...cause,
      shown: 'failure',
      noPersist: false,
      terminal: cause.terminal === true || cause.class === 'early_stop',
    },
    trajectory: record.kind !== 'training',
  };
}

function* rowPieces(row: InputRow, line: OutputLine, answer: Answer): Generator<Piece> {
  const { patch: _patch, ...ours } = line;
  const head = { ...placeOf(row), agent_ref: row.agent_ref, swefarm: ours };
  yield `${jsonText(head).slice(0, -1)},`;
  let opened = false;
  for (const piece of answerPieces(answer)) {
    // The head already has the opening brace.
    yield opened ? piece : String(piece).slice(1);
    opened = true;
  }
  yield '\n';
}

async function writePieces(file: FileHandle, pieces: Iterable<Piece>): Promise<void> {
  let block: Buffer[] = [];
  let size = 0;
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    block.push(bytes);
    size += bytes.length;
    if (size < BLOCK_BYTES) continue;
    await file.appendFile(Buffer.concat(block));
    block = [];
    size = 0;
  }
  await file.appendFile(Buffer.concat(block));
}

async function readRows(
  path: string,
  runId: string,
  lines: Map<string, LineSummary>,
  facts: Facts[],
): Promise<void> {
  for await (const read of parseJsonLines(createReadStream(path))) {
    const row = 'value' in read ? read.value : {};
    const line = row.swefarm as OutputLine | undefined;
    if (line?.run_id !== runId) {
      throw new UsageError(`${path}: ${read.where} is no row of run ${runId}; choose another --output`);
    }
    lines.set(line.rollout_id, lineSummaryOf(line));
    if (row._ng_failure_class !== undefined) continue;
    facts.push({
      ...(row as Facts),
      responses_create_params: undefined,
      response: undefined,
      ng_trajectory: undefined,
      metadata: undefined,
      swefarm: undefined,
    });
  }
}

/** Writes all rollouts of the run, once; returns which ones the file has. */
async function writeInputs(
  path: string,
  record: RunRecord,
  instances: readonly Instance[],
): Promise<Set<string>> {
  const asked = new Set<string>();
  if ((await stat(path).catch(() => null)) !== null) {
    for await (const read of parseJsonLines(createReadStream(path))) {
      if ('value' in read) asked.add(keyOf(read.value as InputRow));
    }
    return asked;
  }
  const size = startedGroup(record);
  function* rows(): Generator<string> {
    for (const [task, instance] of instances.entries()) {
      for (let index = 0; index < size; index++) {
        const row = inputRow(instance, record, task, index);
        asked.add(keyOf(row));
        yield `${jsonText(row)}\n`;
      }
    }
  }
  await inFolder(path, () => replaceFile(path, rows(), { aside: `${path}.new` }));
  return asked;
}
