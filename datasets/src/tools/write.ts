/** Streams rows to a JSONL, JSON or parquet file. A failed write leaves the old file unchanged. */
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { errorMessage, replaceWith, UnusableError, UsageError } from '@swefarm/shared';
import { fileWriter, parquetWriteRows } from 'hyparquet-writer';
import type { Row } from '../fields/fields.ts';
import { columnsOf, sameValue, schemaOf, storedRow } from './columns.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';

const ROW_FORMS = ['json', 'jsonl', 'parquet'] as const;
type RowForm = (typeof ROW_FORMS)[number];

type RowSource = {
  /** Yields the rows. May be called twice, because parquet needs a first pass to find the columns of JSON rows. */
  rows: () => AsyncIterable<VerbatimRow>;
  /** Schema of the source file, if all rows come from one parquet file; otherwise null. */
  parquet: VerbatimFile['parquet'];
};

/** Number of rows in a row group of a parquet file. */
const GROUP_ROWS = 1000;

/** Returns the format by the extension of a file name. @throws UsageError for an unknown extension */
export function formOf(path: string): { form: RowForm; gzip: boolean } {
  const name = path.toLowerCase();
  const gzip = name.endsWith('.gz');
  const plain = gzip ? name.slice(0, -3) : name;
  const form = ROW_FORMS.find((one) => plain.endsWith(`.${one}`)) ?? (path === '-' ? 'jsonl' : null);
  if (form === null) {
    throw new UsageError(
      `${path}: expected a name that ends in .jsonl, .json or .parquet (JSON also with .gz)`,
    );
  }
  if (form === 'parquet' && gzip) {
    throw new UsageError(`${path}: parquet files are compressed inside; leave .gz out`);
  }
  return { form, gzip };
}

/**
 * Writes the file at `path` (`-`: standard output) and returns the number of rows.
 *
 * @throws UsageError for rows that the format cannot store; UnusableError if the file cannot be written
 */
export async function writeRows(path: string, source: RowSource): Promise<number> {
  const { form, gzip } = formOf(path);
  let count = 0;
  async function* counted(): AsyncGenerator<VerbatimRow> {
    for await (const row of source.rows()) {
      count += 1;
      yield row;
    }
  }
  if (path === '-') {
    for await (const piece of texts(counted(), form)) await written(process.stdout, piece);
    return count;
  }
  const full = resolve(path);
  const aside = join(dirname(full), `.${basename(full)}.part`);
  try {
    await mkdir(dirname(full), { recursive: true });
    await replaceWith(
      full,
      async (part) => {
        if (form === 'parquet') await writeParquet(path, part, { ...source, rows: counted }, source);
        else {
          const pieces = Readable.from(texts(counted(), form), { objectMode: true });
          if (gzip) await pipeline(pieces, createGzip(), createWriteStream(part));
          else await pipeline(pieces, createWriteStream(part));
        }
      },
      aside,
    );
  } catch (error) {
    throw unwritableRows(path, error);
  }
  return count;
}

async function* texts(rows: AsyncIterable<VerbatimRow>, form: RowForm): AsyncGenerator<string> {
  if (form === 'jsonl') {
    for await (const row of rows) yield `${row.text()}\n`;
    return;
  }
  let before = '[\n';
  for await (const row of rows) {
    yield before + row.text();
    before = ',\n';
  }
  yield before === '[\n' ? '[]\n' : '\n]\n';
}

async function writeParquet(
  name: string,
  part: string,
  counted: RowSource,
  source: RowSource,
): Promise<void> {
  const { parquet } = source;
  const writer = fileWriter(part);
  // Statistics would repeat whole patches, and no reader of datasets uses them.
  const options = { writer, rowGroupSize: GROUP_ROWS, statistics: false } as const;
  if (parquet) {
    const first = await firstOf(source.rows());
    if (!first) throw new UsageError(`${name}: no row is left to write; loosen the selection`);
    await parquetWriteRows({
      ...options,
      rows: mapped(counted.rows(), ({ value }) => sameValue(value) as Row),
      columns: Object.keys(first.value).map((column) => ({ name: column })),
      schema: parquet.schema,
      kvMetadata: parquet.metadata,
    });
    return;
  }
  const columns = await columnsOf(name, source.rows());
  await parquetWriteRows({
    ...options,
    rows: mapped(counted.rows(), (row) => storedRow(row, columns)),
    columns: [...columns.keys()].map((column) => ({ name: column })),
    schema: schemaOf(columns),
  });
}

async function firstOf(rows: AsyncIterable<VerbatimRow>): Promise<VerbatimRow | null> {
  for await (const row of rows) return row;
  return null;
}

async function* mapped(
  rows: AsyncIterable<VerbatimRow>,
  map: (row: VerbatimRow) => Row,
): AsyncGenerator<Row> {
  for await (const row of rows) yield map(row);
}

const written = (stream: Writable, text: string): Promise<void> =>
  new Promise((done, failed) => {
    stream.write(text, (error) => (error ? failed(error) : done()));
  });

function unwritableRows(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof UsageError || code === undefined || !/^E[A-Z]+$/.test(code)) return error;
  const remedy =
    code === 'ENOSPC' ? 'the disk is full: free some space' : 'check the folder and its permissions';
  const message = `${path}: cannot be written (${errorMessage(error)}); ${remedy}`;
  return new UnusableError('output_unwritable', message, { cause: error });
}
