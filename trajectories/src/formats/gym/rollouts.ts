/**
 * Writes an output as the files of Gym's collector: judged rows in `X.jsonl`, others in `X_failures.jsonl`, requested rows in
 * `X_materialized_inputs.jsonl`, the profile in `X_aggregate_metrics.json`. The field `swefarm` of a row is the output line, for reports
 * and resumed collections.
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
import { inFolder, openAppending, readCursor, replaceRecord, writing } from '../../output/appendfile.ts';
import { type LineSummary, lineSummaryOf, type OutputLine } from '../../output/line.ts';
import { createOutput, type Output } from '../../output/output.ts';
import { aggregate } from './aggregate.ts';
import { type Answer, rowPieces, verdictOf } from './answer.ts';
import { AGENT_REF, type InputRow, inputRow } from './inputs.ts';
import type { Piece } from './json.ts';
import { unjudgedCause } from './unjudged.ts';

/** Returns the paths of the files beside `X.jsonl`, with the names of Gym's collector (nemo_gym/path_utils.py). */
export function gymFiles(path: string): { failures: string; inputs: string; metrics: string } {
  const { dir, name } = parse(resolve(path));
  const beside = (end: string): string => `${dir}/${name}_${end}`;
  return {
    failures: beside('failures.jsonl'),
    inputs: beside('materialized_inputs.jsonl'),
    metrics: beside('aggregate_metrics.json'),
  };
}

/** Small fields of a row, the input of {@link aggregate}. */
type Facts = Parameters<typeof aggregate>[0][number];

const HEAD = '{"_ng_task_index":';
/** Approximate number of bytes of one write. */
const BLOCK_BYTES = 1024 * 1024;

/**
 * Opens new files, or the files of the same run to resume it.
 * @throws UsageError when a file contains anything but rows of the run; UnusableError when a file cannot be written
 */
export async function openGymOutput(
  path: string,
  record: RunRecord,
  instances: readonly Instance[],
): Promise<Output> {
  const files = gymFiles(path);
  await using opened = new AsyncDisposableStack();
  const open = async (name: string): Promise<FileHandle> =>
    opened.adopt(await openAppending(name, HEAD), (file) => file.close());
  const rows = await open(path);
  const failures = await open(files.failures);
  const lines = new Map<string, LineSummary>();
  const facts: Facts[] = [];
  for (const name of [path, files.failures]) await readRows(name, record.run_id, lines, facts);
  const requested = await writeInputs(files.inputs, record, instances);
  const inputs = await open(files.inputs);
  const tasks = new Map(instances.map((instance, task) => [instance.instance_id, { instance, task }]));
  const taken = new Map<string, Taken>();

  const writeLine = async (line: OutputLine): Promise<void> => {
    const known = tasks.get(line.instance_id);
    const own = taken.get(line.rollout_id);
    taken.delete(line.rollout_id);
    if (!known || !own) throw new Error(`${line.rollout_id}: a line of no instance of the run`);
    const row = inputRow(known.instance, record, known.task, line.rollout_index);
    // The farm added this rollout during the run, to replace a lost one.
    if (!requested.has(keyOf(row))) {
      await inputs.appendFile(`${jsonText(row)}\n`);
      requested.add(keyOf(row));
    }
    const answer = answerOf(row, own, known.instance, record);
    const { patch: _patch, ...ours } = line;
    const head = { ...indicesOf(row), agent_ref: row.agent_ref, swefarm: ours };
    await writePieces(answer.unjudged ? failures : rows, rowPieces(head, answer));
    if (!answer.unjudged) facts.push({ ...indicesOf(row), reward: line.reward ?? 0, ...verdictOf(answer) });
  };

  const name = resolve(path);
  const cursor = await readCursor(name, record.run_id);
  const stack = opened.move();
  return createOutput({
    name,
    lines,
    cursor,
    runId: record.run_id,
    take: (result, content) => void taken.set(result.rollout_id, { result, content }),
    write: (added) =>
      writing(name, async () => {
        for (const line of added) await writeLine(line);
        await Promise.all([rows.datasync(), failures.datasync()]);
      }),
    async close() {
      await using _files = stack;
      await writeMetrics(files.metrics, facts);
    },
  });
}

type Taken = { result: Result; content: ArtifactContent | null };

function writeMetrics(path: string, facts: readonly Facts[]): Promise<void> {
  const ordered = facts.toSorted(
    (a, b) =>
      (a._ng_task_index ?? 0) - (b._ng_task_index ?? 0) ||
      Number(a._ng_rollout_index) - Number(b._ng_rollout_index),
  );
  const metrics = jsonText([{ agent_ref: AGENT_REF, ...aggregate(ordered) }], 2);
  return inFolder(path, () => replaceRecord(path, metrics));
}

const indicesOf = ({ _ng_task_index, _ng_rollout_index }: InputRow) => ({
  _ng_task_index,
  _ng_rollout_index,
});

const keyOf = (row: Pick<InputRow, '_ng_task_index' | '_ng_rollout_index'>): string =>
  `${row._ng_task_index}/${row._ng_rollout_index}`;

function answerOf(row: InputRow, { result, content }: Taken, instance: Instance, record: RunRecord): Answer {
  const cause = unjudgedCause(result);
  return {
    row,
    result,
    content,
    repo: instance.repo,
    evaluationTimeout: record.evaluation.timeout,
    // The farm stores a cancelled rollout, so this rollout gets a row. Gym's collector stores no row for a rollout that the collector
    // killed.
    unjudged: cause && {
      ...cause,
      shown: 'failure',
      noPersist: false,
      terminal: cause.terminal === true || cause.class === 'early_stop',
    },
    lines: 'main',
    trajectory: record.kind !== 'training',
  };
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

/** Writes a row for each rollout of the run, unless the file exists. Returns the keys of the rows in the file. */
async function writeInputs(
  path: string,
  record: RunRecord,
  instances: readonly Instance[],
): Promise<Set<string>> {
  const requested = new Set<string>();
  if ((await stat(path).catch(() => null)) !== null) {
    for await (const read of parseJsonLines(createReadStream(path))) {
      if ('value' in read) requested.add(keyOf(read.value as InputRow));
    }
    return requested;
  }
  const size = startedGroup(record);
  function* rows(): Generator<string> {
    for (const [task, instance] of instances.entries()) {
      for (let index = 0; index < size; index++) {
        const row = inputRow(instance, record, task, index);
        requested.add(keyOf(row));
        yield `${jsonText(row)}\n`;
      }
    }
  }
  await inFolder(path, () => replaceFile(path, rows(), { aside: `${path}.new` }));
  return requested;
}
