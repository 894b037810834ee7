/** The formats of a run's results. Apart from registry.ts, because commands that collect need none of the formats there. */
import type { Instance, RunRecord } from '@swefarm/shared';
import { type Output, type OutputFormat, openOutputFile } from '../output/output.ts';
import { gymFiles, openGymOutput } from './gym/rollouts.ts';

export type ResultFormat = {
  /** It writes more files than `--output` names, so it cannot go to standard output. */
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
