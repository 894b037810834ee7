/** Lists the formats of a run's results. They are not in registry.ts, because commands that collect need none of the formats there. */
import type { Instance, RunRecord } from '@swefarm/shared';
import { type Output, type OutputFormat, openOutputFile } from '../output/output.ts';
import { gymFiles, openGymOutput } from './gym/rollouts.ts';

export type ResultFormat = {
  /** Whether the format writes several files, so that it cannot write to standard output. */
  severalFiles: boolean;
  /** Returns the paths of the files that contain the rows of rollouts. */
  rowFiles(path: string): string[];
  /** Opens a new output or one to resume. Throws UsageError when the files are no output of this run. */
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
