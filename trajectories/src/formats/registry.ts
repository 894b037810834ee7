/** Lists the formats of other programs for stored rollouts. results.ts lists the formats of a run's results. */
import type { ExportFormat } from '../export/format.ts';
import type { ImportFormat } from '../export/importing.ts';
import { nemoGymRows } from './gym/exported.ts';
import { harborJob } from './harbor/job.ts';
import { atif } from './harbor/trajectory.ts';
import { miniSweAgentImport } from './miniswe/imported.ts';
import { miniSweAgent } from './miniswe/trajectory.ts';
import { openHandsImport } from './openhands/imported.ts';
import { openHands } from './openhands/output.ts';
import { sftMessages, verifierLines } from './sft/messages.ts';
import { sweAgentImport } from './sweagent/imported.ts';
import { sweAgent } from './sweagent/trajectory.ts';
import { predictionLines, predictionsImport } from './swebench/lines.ts';
import { swesmithFinetuning } from './swesmith/finetuning.ts';
import { everything } from './tables/everything.ts';
import { tokenShards } from './tokens/tokens.ts';

/** Formats of `swefarm export --format NAME`. */
export const EXPORT_FORMATS: Readonly<Record<string, ExportFormat>> = {
  'sft-messages': sftMessages,
  'swesmith-xml': swesmithFinetuning,
  openhands: openHands,
  'swe-agent': sweAgent,
  'mini-swe-agent': miniSweAgent,
  atif,
  harbor: harborJob,
  'nemo-gym': nemoGymRows,
  tokens: tokenShards,
  verifier: verifierLines,
  preds: predictionLines,
  parquet: everything,
};

/** Formats of `swefarm import NAME`. */
export const IMPORT_FORMATS: Readonly<Record<string, ImportFormat>> = {
  'mini-swe-agent': miniSweAgentImport,
  'swe-agent': sweAgentImport,
  openhands: openHandsImport,
  preds: predictionsImport,
};
