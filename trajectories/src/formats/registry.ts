/**
 * The foreign formats that the farm writes, each in its own folder. To add one, add its name to the list and its row to the table;
 * one without the other is a type error. How the results of a run are written: results.ts. `swefarm eval` always writes the tree of the SWE-bench harness.
 */
import type { Instance } from '@swefarm/shared';
import type { Option } from 'commander';
import type { ExportFormat } from '../export/format.ts';
import type { ImportFormat } from '../export/importing.ts';
import { atif } from './atif/trajectory.ts';
import { nemoGymRows } from './gym/exported.ts';
import { miniSweAgentImport } from './miniswe/imported.ts';
import { miniSweAgent } from './miniswe/trajectory.ts';
import { openHandsImport } from './openhands/imported.ts';
import { openHands } from './openhands/output.ts';
import { sftMessages } from './sft/messages.ts';
import { verifierLines } from './sft/verifier.ts';
import { sweAgentImport } from './sweagent/imported.ts';
import { sweAgent } from './sweagent/trajectory.ts';
import { predictionLines } from './swebench/exported.ts';
import { predictionsImport } from './swebench/imported.ts';
import { swesmithFinetuning } from './swesmith/finetuning.ts';
import { everything } from './tables/everything.ts';
import { tokenShards } from './tokens/tokens.ts';
import { verlDataset } from './verl/dataset.ts';

/** Writes a dataset for another trainer: `swefarm dataset to-NAME`. */
export type DatasetFormat = {
  description: string;
  options(): Option[];
  /** Returns what was written. Throws UsageError when the folder cannot be written. */
  write(
    instances: readonly Instance[],
    folder: string,
    flags: Readonly<Record<string, unknown>>,
  ): Promise<Record<string, { path: string; rows: number }>>;
};

export const DATASET_FORMATS: Readonly<Record<string, DatasetFormat>> = { verl: verlDataset };

/** What stored rollouts are written as: `swefarm export --format NAME`. */
export const EXPORT_FORMATS: Readonly<Record<string, ExportFormat>> = {
  'sft-messages': sftMessages,
  'swesmith-xml': swesmithFinetuning,
  openhands: openHands,
  'swe-agent': sweAgent,
  'mini-swe-agent': miniSweAgent,
  atif,
  'nemo-gym': nemoGymRows,
  tokens: tokenShards,
  verifier: verifierLines,
  preds: predictionLines,
  parquet: everything,
};

/** What is stored as if it had been collected: `swefarm import NAME`. */
export const IMPORT_FORMATS: Readonly<Record<string, ImportFormat>> = {
  'mini-swe-agent': miniSweAgentImport,
  'swe-agent': sweAgentImport,
  openhands: openHandsImport,
  preds: predictionsImport,
};
