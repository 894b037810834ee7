/** Reads rows with all columns and without loss, for the dataset tools. */
import type { Readable } from 'node:stream';
import { UsageError } from '@swefarm/shared';
import { isRow } from '../fields/fields.ts';
import { isFolder, readTaskFolders } from '../harbor/folder.ts';
import { parseWhole, readAll, textOf } from '../json.ts';
import { parseJsonLines } from '../jsonl.ts';
import { datasetError, type RawRow, type RowProblem } from '../problem.ts';
import { openSource, readError } from '../source.ts';
import { readWholeParquet } from './parquetrows.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';

/** Reading ends after this many bad rows. */
const MOST_PROBLEMS = 100;

/** Opens a dataset file. @throws UsageError if the file is missing, empty or of an unknown format */
export async function openVerbatim(path: string, signal?: AbortSignal): Promise<VerbatimFile> {
  if (await isFolder(path)) return { path, form: 'tasks', parquet: null, rows: () => taskRows(path) };
  const source = await openSource(path, signal);
  if (source.form === 'parquet') {
    const { schema, metadata, rows } = await readWholeParquet(path);
    return { path, form: 'parquet', parquet: { schema, metadata }, rows };
  }
  const read = source.form === 'jsonl' ? lineRows : itemRows;
  return { path, form: source.form, parquet: null, rows: () => read(path, source.open) };
}

const lineRows = (path: string, open: () => Readable): AsyncGenerator<VerbatimRow> =>
  goodRows(path, parseJsonLines(open()));

const taskRows = (path: string): AsyncGenerator<VerbatimRow> => goodRows(path, readTaskFolders(path));

async function* goodRows(path: string, rows: AsyncIterable<RawRow>): AsyncGenerator<VerbatimRow> {
  const problems: RowProblem[] = [];
  try {
    for await (const row of rows) {
      if ('problem' in row) problems.push(row.problem);
      // Reading continues after a bad row, so that the error names all bad rows.
      else if (problems.length === 0) yield { ...row, text: () => row.text ?? JSON.stringify(row.value) };
      if (problems.length >= MOST_PROBLEMS) break;
    }
  } catch (error) {
    throw readError(path, error);
  }
  if (problems.length > 0) throw datasetError(path, problems);
}

async function* itemRows(path: string, open: () => Readable): AsyncGenerator<VerbatimRow> {
  let bytes: Buffer;
  try {
    bytes = await readAll(path, open());
  } catch (error) {
    throw readError(path, error);
  }
  const json = textOf(bytes);
  const whole = parseWhole(path, json);
  if (isRow(whole) && 'instance_id' in whole) {
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

type JsonItem = {
  /** Key of the row in the object; null for an item of a list. */
  key: string | null;
  /** JSON text of the row without white space between tokens. */
  text: string;
};

/** Yields the rows of valid JSON as texts, so that no number loses a digit. @throws UsageError for neither a list nor an object */
function* splitJson(path: string, json: string): Generator<JsonItem> {
  const scan = new Scanner(json);
  const open = scan.next();
  if (open !== '[' && open !== '{') {
    throw new UsageError(`${path}: expected a list or an object of rows, found ${open || 'nothing'}`);
  }
  const close = open === '[' ? ']' : '}';
  for (let token = scan.next(); token !== close && token !== ''; token = scan.next()) {
    if (token === ',') continue;
    let key: string | null = null;
    if (open === '{') {
      key = JSON.parse(token) as string;
      scan.next(); // the colon
      token = scan.next();
    }
    yield { key, text: scan.rest(token) };
  }
}

/** Reads the tokens of a valid JSON text. */
class Scanner {
  readonly #json: string;
  readonly #token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gsu;

  constructor(json: string) {
    this.#json = json;
  }

  /** Returns the next token; '' at the end of the text. */
  next(): string {
    return this.#token.exec(this.#json)?.[0] ?? '';
  }

  /** Returns the text of the value that begins with the token `first`. */
  rest(first: string): string {
    if (first !== '{' && first !== '[') return first;
    const parts = [first];
    for (let depth = 1; depth > 0; ) {
      const token = this.next();
      if (token === '') break;
      if (token === '{' || token === '[') depth += 1;
      else if (token === '}' || token === ']') depth -= 1;
      parts.push(token);
    }
    return parts.join('');
  }
}
