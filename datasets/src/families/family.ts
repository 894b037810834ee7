/** Defines a dataset family: how its rows are recognised, which columns they use, and how a row becomes an instance. */
import type { DatasetFamily, Instance, Picture } from '@swefarm/shared';
import type { z } from 'zod';
import type { FieldReader, Row } from '../fields/fields.ts';

export type RowOptions = {
  /** Overrides the family detected from the row. */
  family?: DatasetFamily | undefined;
  /** Verdict rule of SWE-rebench V2; default: `equal`, and `subset` for rows in NeMo Gym's wrapper. */
  verdict?: 'equal' | 'subset' | undefined;
  /** Folder with files that are not in the rows: the scripts of SWE-bench Pro, or Harbor tasks that rows name. */
  familyFiles?: string | undefined;
  /** Key of the reward that counts in Harbor tasks. If absent, the key `reward` or else the only key counts. */
  rewardKey?: string | undefined;
  /** Variables of the caller that Harbor tasks may read: name → value. */
  taskEnv?: Readonly<Record<string, string>> | undefined;
  /** Finds the files of pictures. Absent: instances contain only the addresses of pictures. */
  pictures?: PictureSource | undefined;
};

/** `find` returns a picture with its file, or with the problem that prevents reading the file. */
export type PictureSource = { find(address: string): Picture };

export type RowContext = RowOptions & {
  /** Name of the dataset in NeMo Gym's wrapper around the row; null for a row without wrapper. */
  wrappedDataset: string | null;
};

/** Instance whose fields with a default may be absent. */
export type InstanceDraft = z.input<typeof Instance>;

export type Family = {
  name: DatasetFamily;
  /** Columns that `read` uses, in addition to the columns that all families share (`registry.ts`). */
  columns: readonly string[];
  /** Whether the content of a row shows that the row belongs to the family. The name of the dataset alone is not enough. */
  fits(row: Row, context: RowContext): boolean;
  /** Returns id and repository of a row, for filters and duplicates; default: the columns instance_id and repo. */
  names?(row: Row): { id: unknown; repo: unknown };
  /** Returns the instance of a row. The result is ignored if the FieldReader recorded a problem. */
  read(read: FieldReader, context: RowContext): InstanceDraft;
};

/** Placeholder that `read` returns for a refused row. */
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
