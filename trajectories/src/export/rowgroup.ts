/**
 * Adds a row group to a parquet file. hyparquet-writer creates several JavaScript numbers for each element of a list, so this file passes
 * lists of numbers to its column writer as typed arrays.
 */
import type { CompressionCodec, DecodedArray, Encoding, SchemaTree } from 'hyparquet';
import type { ParquetWriter } from 'hyparquet-writer';
import { writeColumn } from 'hyparquet-writer/src/column.js';
import { encodeNestedValues } from 'hyparquet-writer/src/dremel.js';
import { schemaPathResolver } from 'hyparquet-writer/src/schema.js';
import type { ColumnEncoder, PageData } from 'hyparquet-writer/src/types.js';

/** Numbers of one row in a column of lists. */
export type Numbers = Int32Array | Uint8Array | Float32Array;

export type GroupColumn = {
  name: string;
  /** One value per row; in a column of lists of numbers, each value is a typed array. */
  data: unknown[];
  encoding?: Encoding | undefined;
  codec?: CompressionCodec | undefined;
};

/** Writes one row group as the library's `write` does, without statistics and indexes. Throws the error of the file system. */
export function addRowGroup(file: ParquetWriter, columns: readonly GroupColumn[], rows: number): void {
  const { writer } = file;
  const from = writer.offset;
  const pathOf = schemaPathResolver(file.schema);
  const chunks = columns.flatMap(({ name, data, encoding, codec = file.codec }) =>
    leavesOf(pathOf([name])).map((path) => {
      const schemaPath = path.map(({ element }) => element);
      const element = schemaPath.at(-1);
      if (!element) throw new TypeError(`no column ${name}`);
      const column = {
        columnName: schemaPath
          .slice(1)
          .map((one) => one.name)
          .join('.'),
        ...{
          element,
          schemaPath,
          codec,
          compressors: file.compressors as ColumnEncoder['compressors'],
        },
        ...{ stats: false, columnIndex: false, offsetIndex: false, pageSize: 0 },
        ...(encoding === undefined ? {} : { encoding }),
      };
      const pageData = numberPage(path, data) ?? encodeNestedValues(path, data.map(plain) as DecodedArray);
      return writeColumn({ writer, column, pageData }).chunk;
    }),
  );
  const total_byte_size = chunks.reduce(
    (sum, { meta_data }) => sum + (meta_data?.total_uncompressed_size ?? 0n),
    0n,
  );
  file.num_rows += BigInt(rows);
  file.row_groups.push({
    columns: chunks,
    total_byte_size,
    num_rows: BigInt(rows),
    total_compressed_size: BigInt(writer.offset - from),
  });
  void writer.flush?.();
}

function leavesOf(path: SchemaTree[]): SchemaTree[][] {
  const children = path.at(-1)?.children ?? [];
  return children.length === 0 ? [path] : children.flatMap((child) => leavesOf([...path, child]));
}

const isNumbers = (value: unknown): value is Numbers => ArrayBuffer.isView(value);
const plain = (value: unknown): unknown => (isNumbers(value) ? Array.from(value) : value);

/** Definition level of an element that exists in an optional list of optional elements. */
const PRESENT = 3;

/** Returns a page of all numbers of a list column; null unless every row is a list of at least one number. */
function numberPage(path: readonly SchemaTree[], data: readonly unknown[]): PageData | null {
  // A path to a list element has four nodes: root, list, repeated group, element.
  if (path.length !== 4 || !data.every((one) => isNumbers(one) && one.length > 0)) return null;
  const lists = data as readonly Numbers[];
  const length = lists.reduce((sum, one) => sum + one.length, 0);
  const values = path.at(-1)?.element.type === 'FLOAT' ? new Float32Array(length) : new Int32Array(length);
  const definition = new Uint8Array(length).fill(PRESENT);
  const repetition = new Uint8Array(length).fill(1);
  let at = 0;
  for (const list of lists) {
    repetition[at] = 0;
    values.set(list, at);
    at += list.length;
  }
  // The library declares levels as `number[]`, but reads them only by index.
  const levels = (bytes: Uint8Array): number[] => bytes as unknown as number[];
  return {
    values,
    definitionLevels: levels(definition),
    repetitionLevels: levels(repetition),
    maxDefinitionLevel: PRESENT,
  };
}
