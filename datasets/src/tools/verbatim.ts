/** Reads rows with all their columns and without loss: what the dataset tools copy from one file to another. */
import type { Readable } from 'node:stream';
import { UsageError } from '@swefarm/shared';
import { parseJsonLines } from '../jsonl.ts';
import { datasetError, type RowProblem } from '../problem.ts';
import { openSource, readError } from '../source.ts';
import { splitJson } from './jsonitems.ts';
import { readWholeParquet } from './parquetrows.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';

/** A JSON text longer than this cannot be held by V8 at once. */
const MOST_BYTES = 500 * 1024 ** 2;
/** A file with more bad rows than this is bad throughout. */
const MOST_PROBLEMS = 100;

/** Throws UsageError when the file is missing, empty or of no known form. */
export async function openVerbatim(path: string, signal?: AbortSignal): Promise<VerbatimFile> {
  const source = await openSource(path, signal);
  if (source.form === 'parquet') {
    const { schema, metadata, rows } = await readWholeParquet(path);
    return { path, form: 'parquet', parquet: { schema, metadata }, rows };
  }
  const read = source.form === 'jsonl' ? lineRows : itemRows;
  return { path, form: source.form, parquet: null, rows: () => read(path, source.open) };
}

async function* lineRows(path: string, open: () => Readable): AsyncGenerator<VerbatimRow> {
  const problems: RowProblem[] = [];
  try {
    for await (const row of parseJsonLines(open())) {
      if ('problem' in row) problems.push(row.problem);
      // A bad row ends the copy at the end of the file, so that all bad rows are named at once.
      else if (problems.length === 0) yield { ...row, text: () => row.text ?? JSON.stringify(row.value) };
      if (problems.length >= MOST_PROBLEMS) break;
    }
  } catch (error) {
    throw readError(path, error);
  }
  if (problems.length > 0) throw datasetError(path, problems);
}

async function* itemRows(path: string, open: () => Readable): AsyncGenerator<VerbatimRow> {
  const json = await wholeText(path, open());
  const whole = parsed(path, json);
  // One row, and no list of them.
  if (!Array.isArray(whole) && isRow(whole) && 'instance_id' in whole) {
    yield { where: 'item 1', value: whole, text: () => [...splitJson(path, `[${json}]`)][0]?.text ?? '' };
    return;
  }
  let number = 0;
  for (const { key, text } of splitJson(path, json)) {
    number += 1;
    const where = key === null ? `item ${number}` : `entry ${JSON.stringify(key)}`;
    const value: unknown = JSON.parse(text);
    if (!isRow(value))
      throw new UsageError(`${path}: ${where}: expected a JSON object; write one object per row`);
    if (key === null || 'instance_id' in value) yield { where, value, text: () => text };
    else {
      const named = `{"instance_id":${JSON.stringify(key)}${text === '{}' ? '' : ','}${text.slice(1)}`;
      yield { where, value: { instance_id: key, ...value }, text: () => named };
    }
  }
}

const isRow = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

async function wholeText(path: string, stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      size += (chunk as Buffer).length;
      if (size > MOST_BYTES) {
        throw new UsageError(
          `${path}: JSON over 500 MB cannot be read at once; convert it to JSONL with a streaming tool (jq -c '.[]')`,
        );
      }
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    throw readError(path, error);
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
}

function parsed(path: string, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new UsageError(
      `${path}: is not valid JSON (${(error as Error).message}); the file is cut off or damaged, fetch it again`,
      { cause: error },
    );
  }
}
