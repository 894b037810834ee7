/** Row with all columns and all digits of numbers, which the dataset tools copy from one file to another. */
import type { FileMetaData, SchemaElement } from 'hyparquet';

export type VerbatimRow = {
  /** Position in the file: `line 3`, `row 12`, `item 4`. */
  where: string;
  value: Readonly<Record<string, unknown>>;
  /** Returns the row as one line of JSON with all digits. @throws UsageError for a value that JSON cannot represent */
  text: () => string;
};

export type VerbatimFile = {
  path: string;
  /** `tasks` is a folder of Harbor tasks. */
  form: 'json' | 'jsonl' | 'parquet' | 'tasks';
  /** Schema and key-value pairs of the footer; null for other formats. */
  parquet: { schema: SchemaElement[]; metadata: NonNullable<FileMetaData['key_value_metadata']> } | null;
  /** Yields the rows; may be called several times. @throws UsageError for a damaged file, with position and remedy */
  rows: () => AsyncGenerator<VerbatimRow>;
};
