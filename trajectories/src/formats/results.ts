/**
 * How the results of a run can be written. Apart from registry.ts, because every command that collects needs this table, and none
 * of the formats there. A name of `OutputFormat` without a row is a type error.
 */
import type { Instance, RunRecord } from '@swefarm/shared';
import { type Output, type OutputFormat, openOutputFile } from '../output/output.ts';
import { gymFiles, openGymOutput } from './gym/rollouts.ts';

/** How the results of a run are written. */
export type ResultFormat = {
  /** Whether it writes more than the file that `--output` names: standard output cannot take it. */
  severalFiles: boolean;
  /** The files that hold a row for each rollout. */
  rowFiles(path: string): string[];
  /** Opens a new output or one to resume. Throws UsageError when the files hold something else. */
  open(path: string, record: RunRecord, instances: () => Promise<readonly Instance[]>): Promise<Output>;
};

export const RESULT_FORMATS: Readonly<Record<OutputFormat, ResultFormat>> = {
  swefarm: {
    severalFiles: false,
    rowFiles: (path) => [path],
    open: (path, record) => openOutputFile(path, record.run_id),
  },
  gym: {
    severalFiles: true,
    rowFiles: (path) => [path, gymFiles(path).failures],
    open: async (path, record, instances) => openGymOutput(path, record, await instances()),
  },
};
