/** What the dataset tools copy from one file to another: a row with all its columns and digits. */
import type { FileMetaData, SchemaElement } from 'hyparquet';

export type VerbatimRow = {
  /** Where in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  value: Readonly<Record<string, unknown>>;
  /** The row as one line of JSON, with every digit of the file. Throws UsageError for a value that JSON cannot hold. */
  text: () => string;
};

export type VerbatimFile = {
  path: string;
  form: 'json' | 'jsonl' | 'parquet';
  /** The schema and the footer's key-value pairs of a parquet file; null for others. */
  parquet: { schema: SchemaElement[]; metadata: NonNullable<FileMetaData['key_value_metadata']> } | null;
  /** May be called several times. Throws UsageError for damage, naming file, place and remedy. */
  rows: () => AsyncGenerator<VerbatimRow>;
};
