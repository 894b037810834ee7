/** What a dataset family is to the reader of rows: its signs, its columns, and how a row becomes an instance. */
import type { DatasetFamily, Instance, Picture } from '@swefarm/shared';
import type { z } from 'zod';
import type { FieldReader, Row } from '../fields/fields.ts';

export type RowOptions = {
  /** Overrides the family detected from the row. */
  family?: DatasetFamily | undefined;
  /** For families whose makers ask for equality where training asks for a subset (SWE-rebench V2); absent: as the makers do. */
  verdict?: 'equal' | 'subset' | undefined;
  /** A folder with files that the rows of a family lack (SWE-bench Pro's scripts). */
  familyFiles?: string | undefined;
  /** Where the pictures of issues are; absent: rows only name them. */
  pictures?: PictureSource | undefined;
};

/** Gives the file of a picture, or says why there is none. */
export type PictureSource = { find(address: string): Picture };

/** What is known of a row besides its columns. */
export type RowContext = RowOptions & {
  /** The dataset that NeMo Gym's wrapper names around the row; null without a wrapper. */
  wrappedDataset: string | null;
};

/** An instance as a reader writes it: what the records leave to defaults may be absent. */
export type InstanceDraft = z.input<typeof Instance>;

export type Family = {
  name: DatasetFamily;
  /** The columns that its reader looks at, besides those of all families. */
  columns: readonly string[];
  /** Whether a row shows the family's signs, never a dataset's name alone. The registry asks in its own order. */
  fits(row: Row, context: RowContext): boolean;
  /** Id and repository of a row, for filters and duplicates; absent: the columns instance_id and repo. */
  names?(row: Row): { id: unknown; repo: unknown };
  /** The instance; it counts for nothing when the reader complained. */
  read(read: FieldReader, context: RowContext): InstanceDraft;
};

/** What a reader returns that only complained. */
export const NOTHING: InstanceDraft = {
  instance_id: '',
  repo: '',
  base_commit: '',
  problem_statement: '',
  FAIL_TO_PASS: [],
  PASS_TO_PASS: [],
  family: 'custom',
  image: '',
};
