/** A row with all its columns and digits, which the dataset tools copy from one file to another. */
import type { FileMetaData, SchemaElement } from 'hyparquet';

export type VerbatimRow = {
  /** Where in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  value: Readonly<Record<string, unknown>>;
  /** The row as one line of JSON, with every digit of the file. @throws UsageError for a value that JSON lacks */
  text: () => string;
};

export type VerbatimFile = {
  path: string;
  form: 'json' | 'jsonl' | 'parquet';
  /** Schema and key-value pairs of the footer; null for other forms. */
  parquet: { schema: SchemaElement[]; metadata: NonNullable<FileMetaData['key_value_metadata']> } | null;
  /** May be called several times. @throws UsageError for damage, with file, place and remedy */
  rows: () => AsyncGenerator<VerbatimRow>;
};
