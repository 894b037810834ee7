/** Reads all columns of a parquet file, one row group at a time, with values from which an equal file can be written. */
import { UsageError } from '@swefarm/shared';
import { asyncBufferFromFile, parquetMetadataAsync, type SchemaElement } from 'hyparquet';
import { guarded, rowsByGroup } from '../parquet.ts';
import { ExactText, ExactTime, exactJson } from './exact.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';

type Parquet = NonNullable<VerbatimFile['parquet']> & Pick<VerbatimFile, 'rows'>;

/** Opens the file. @throws UsageError if the file is damaged, or has columns whose values cannot be copied without loss */
export async function readWholeParquet(path: string): Promise<Parquet> {
  const file = await asyncBufferFromFile(path);
  const found = await guarded(path, 0, () => parquetMetadataAsync(file, { geoparquet: false }));
  const metadata = { ...found, schema: found.schema.map(markedJson) };
  requireExact(path, metadata.schema);
  const schema = metadata.schema.map(plainElement);
  const names = childNames(schema);
  async function* rows(): AsyncGenerator<VerbatimRow> {
    const options = { file, metadata, parsers: PARSERS, utf8: false, geoparquet: false };
    for await (const { where, row } of rowsByGroup(path, options)) {
      const value = Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
      yield { where, value, text: () => exactJson(value, `${path}: ${where}`) };
    }
  }
  return { schema, metadata: metadata.key_value_metadata ?? [], rows };
}

const decoder = new TextDecoder();

const PARSERS = {
  timestampFromMilliseconds: (value: bigint) => new ExactTime(value, 'MILLIS'),
  timestampFromMicroseconds: (value: bigint) => new ExactTime(value, 'MICROS'),
  timestampFromNanoseconds: (value: bigint) => new ExactTime(value, 'NANOS'),
  dateFromDays: (days: number) => new ExactTime(BigInt(days), 'DAYS'),
  jsonFromBytes: (bytes: Uint8Array) => bytes && new ExactText(decoder.decode(bytes)),
};

/** Refuses types whose values would change in a copy: decimals become binary fractions, maps lose the order of equal keys. */
function requireExact(path: string, schema: readonly SchemaElement[]): void {
  for (const { name, type, converted_type: converted, logical_type: logical } of schema) {
    const lossy =
      type === 'INT96' ||
      /^(DECIMAL|INTERVAL|BSON|MAP|MAP_KEY_VALUE|TIME_MILLIS|TIME_MICROS)$/.test(converted ?? '')
        ? (converted ?? type)
        : /^(DECIMAL|FLOAT16|UUID|VARIANT|GEOMETRY|GEOGRAPHY|MAP|TIME)$/.test(logical?.type ?? '')
          ? logical?.type
          : undefined;
    if (lossy === undefined) continue;
    throw new UsageError(
      `${path}: column ${name} is of parquet's type ${lossy}, which these tools cannot copy without loss; cast it to text, int64 or timestamp first`,
    );
  }
}

/** Adds `converted_type` to JSON columns, because the reader recognises JSON only by this older annotation. */
const markedJson = (element: SchemaElement): SchemaElement =>
  element.logical_type?.type === 'JSON' ? { ...element, converted_type: 'JSON' } : element;

/** Removes `converted_type` from JSON columns, because the writer would encode their text a second time. */
function plainElement(element: SchemaElement): SchemaElement {
  if (element.converted_type !== 'JSON') return element;
  const { converted_type: _converted, ...rest } = element;
  return { ...rest, logical_type: { type: 'JSON' } };
}

/** Returns the names of the columns, which are the children of the first schema element. */
function childNames(schema: readonly SchemaElement[]): string[] {
  const names: string[] = [];
  const end = (at: number): number => {
    let next = at + 1;
    for (let child = 0; child < (schema[at]?.num_children ?? 0); child++) next = end(next);
    return next;
  };
  let at = 1;
  for (let child = 0; child < (schema[0]?.num_children ?? 0); child++) {
    names.push(schema[at]?.name ?? '');
    at = end(at);
  }
  return names;
}
