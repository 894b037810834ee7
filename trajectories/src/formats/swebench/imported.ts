/** Reads predictions of the SWE-bench harness as rollouts that have only a patch. */
import { carriedIn } from '../../export/carried.ts';
import type { ImportedRollout, ImportFormat } from '../../export/importing.ts';
import { importLines, requireText, stringIn } from '../../export/importtree.ts';

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
