/** A dataset family: its signs, its columns, and how a row becomes an instance. */
import type { DatasetFamily, Instance, Picture } from '@swefarm/shared';
import type { z } from 'zod';
import type { FieldReader, Row } from '../fields/fields.ts';

export type RowOptions = {
  /** Overrides the family detected from the row. */
  family?: DatasetFamily | undefined;
  /** The verdict rule for families that define `equal` where training uses `subset` (SWE-rebench V2); default: the family's own. */
  verdict?: 'equal' | 'subset' | undefined;
  /** A folder with files that the rows lack, such as SWE-bench Pro's scripts. */
  familyFiles?: string | undefined;
  /** Absent: instances contain only the addresses of pictures. */
  pictures?: PictureSource | undefined;
};

/** Returns the file of a picture, or the problem that prevents it. */
export type PictureSource = { find(address: string): Picture };

export type RowContext = RowOptions & {
  /** The dataset that NeMo Gym's wrapper names around the row; null without a wrapper. */
  wrappedDataset: string | null;
};

/** An instance without the defaults of the record. */
export type InstanceDraft = z.input<typeof Instance>;

export type Family = {
  name: DatasetFamily;
  /** The columns that its reader uses, in addition to the columns of all families. */
  columns: readonly string[];
  /** Whether a row shows the family's signs. The name of a dataset alone is no sign. */
  fits(row: Row, context: RowContext): boolean;
  /** Id and repository of a row, for filters and duplicates; default: the columns instance_id and repo. */
  names?(row: Row): { id: unknown; repo: unknown };
  /** The instance; it is ignored if the reader recorded a problem. */
  read(read: FieldReader, context: RowContext): InstanceDraft;
};

/** The instance of a row that its family refuses. */
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
