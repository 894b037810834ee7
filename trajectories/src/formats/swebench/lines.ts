/** Writes patches of rollouts as predictions for the SWE-bench harness and sb-cli, and reads predictions as rollouts with only a patch. */
import { jsonText } from '@swefarm/shared';
import { carriedFacts, carriedIn } from '../../export/carried.ts';
import type { ExportFormat, ExportRequest, ExportWriter } from '../../export/format.ts';
import type { ImportedRollout, ImportFormat } from '../../export/importing.ts';
import { importLines, requireText, stringIn } from '../../export/importtree.ts';
import { openLineWriter } from '../../export/linewriter.ts';
import { type ExportedRollout, predictionOf } from '../../export/rollout.ts';
import { openTextFile } from '../../export/textfile.ts';

export const predictionLines: ExportFormat = {
  description: 'predictions for the SWE-bench harness, sb-cli and swefarm eval',
  forms: ['jsonl', 'json'],
  // A prediction is the patch of the whole rollout.
  lines: ['all'],
  shape: 'file',
  oneEach: true,
  open: (request) => (request.form === 'json' ? openObject(request) : openLineWriter(request, rowOf)),
};

const rowOf = (rollout: ExportedRollout) => ({ ...predictionOf(rollout), swefarm: carriedFacts(rollout) });

/** Writes one object that maps instance ids to predictions, like preds.json of SWE-agent and mini-swe-agent. */
async function openObject({ path }: ExportRequest): Promise<ExportWriter> {
  const file = await openTextFile(path);
  let before = '{';
  return {
    ...file,
    async write(rollout) {
      await file.write(`${before}\n${jsonText(rollout.line.instance_id)}: ${jsonText(rowOf(rollout))}`);
      before = ',';
    },
    async finish() {
      await file.write('\n}\n');
      await file.finish();
    },
  };
}

export const predictionsImport: ImportFormat = {
  description: 'predictions: JSON Lines, a list or an object by instance',
  read: (path) => importLines(path, rolloutOf),
};

function rolloutOf(row: Record<string, unknown>, where: string): ImportedRollout {
  const { model_patch: patch } = row;
  if (patch !== null && typeof patch !== 'string') throw new TypeError('model_patch is no text');
  const carried = carriedIn(row.swefarm);
  return {
    where,
    instance_id: requireText(row, 'instance_id'),
    model: stringIn(row, 'model_name_or_path'),
    patch,
    trajectory: null,
    resolved: carried?.resolved ?? null,
    carried,
  };
}
